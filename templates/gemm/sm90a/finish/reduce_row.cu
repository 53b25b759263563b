// Reduces each row of a part: what a lane holds, then its quad, then whoever else has elements of the row.
template <int COUNT>
DEVICE void reduce_${ r.op }(const float (&v)[COUNT], int row, int column, const Epilogue &e) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // a lane holds two rows, 8 apart
    float total = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      if (row_in_part(i) / 8 == half && column + column_in_part(i) < e.columns) total = combine_${ r.how }(total, v[i]);
    for (int other = 1; other < 4; other *= 2) total = combine_${ r.how }(total, __shfl_xor_sync(~0u, total, other));
    const int r = row + half * 8 + threadIdx.x % 32 / 4;
    if (threadIdx.x % 4 == 0 && r < e.rows) publish_${ r.how }(e.${ r.op } + r, total);
  }
}
