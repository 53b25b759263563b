// Reduces each column over a warp's 32 rows, then with whoever else has elements of the column.
DEVICE void reduce_${ r.op }(const float (&v)[CHUNK], int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < CHUNK; ++i) {
    float total = row < e.rows ? combine_${ r.how }(0, v[i]) : 0;
    for (int other = 1; other < 32; other *= 2) total = combine_${ r.how }(total, __shfl_xor_sync(~0u, total, other));
    if (threadIdx.x % 32 == 0 && column + i < e.columns) publish_${ r.how }(e.${ r.op } + column + i, total);
  }
}
