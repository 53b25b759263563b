// Writes this thread's row of a box to swizzled shared memory, 16 bytes at a time.
DEVICE void stage(Output *box, const float (&v)[CHUNK]) {
  const int row = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CHUNK; i += 4)
    reinterpret_cast<float4 *>(box)[row * 8 + (i / 4 ^ row % 8)] = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
}
