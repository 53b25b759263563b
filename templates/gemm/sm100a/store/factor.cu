#pragma unroll
for (int i = 0; i < CHUNK; ++i) v[i] *= scale;
