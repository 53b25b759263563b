// Writes this warpgroup's rows of D from registers; what lies outside the matrix is left out.
DEVICE void store(const Accumulators &acc, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int block = 0; block < M_BLOCKS; ++block) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; ++i) {
      const int r = row + block * 64 + warp * 16 + lane / 4 + (i / 2) % 2 * 8;
      const int c = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (r < m && c < n) d[r * ldd + c] = Output(acc[block][i]);
    }
  }
}
