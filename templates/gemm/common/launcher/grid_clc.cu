const int64_t tiles = int64_t((m + BLOCK_M - 1) / BLOCK_M) * ((n + BLOCK_N - 1) / BLOCK_N);
if (tiles > INT32_MAX) return cudaErrorInvalidValue;
const dim3 grid(static_cast<unsigned>(tiles));  // running CTAs take the tiles of those that wait
