${ part("gemm/common/epilogue/finish.cu") }

// Writes this warpgroup's rows of D from registers; what lies outside the matrix is left out.
DEVICE void store(const Accumulators &acc, Output *d, int64_t ldd, int row, int column, int m, int n,
                  const Epilogue &e) {
#pragma unroll
  for (int block = 0; block < M_BLOCKS; ++block) {
    const int part_row = row + block * 64 + threadIdx.x / 32 % 4 * 16;
#pragma unroll
    for (int i = 0; i < BLOCK_N / 8; ++i) {
      const int part_column = column + i * 2 * PART;
      float v[PART];
      finish_part(v, acc[block] + i * 4, part_row, part_column, e);
/*% for r in plan.finish.reductions %*/
      reduce_${ r.op }(v, part_row, part_column, e);
/*% endfor %*/
#pragma unroll
      for (int j = 0; j < PART; ++j) {
        const int r = part_row + row_in_part(j), c = part_column + column_in_part(j);
        if (r < m && c < n) d[r * ldd + c] = Output(v[j]);
      }
    }
  }
}
