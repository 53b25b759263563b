// Reduces each column of a part: the 8 lanes that hold it, then whoever else has elements of the column.
template <int COUNT>
DEVICE void reduce_${ r.op }(const float (&v)[COUNT], int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    float total = row + row_in_part(i) < e.rows ? combine_${ r.how }(0, v[i]) : 0;
    for (int other = 4; other < 32; other *= 2) total = combine_${ r.how }(total, __shfl_xor_sync(~0u, total, other));
    const int c = column + column_in_part(i);
    if (threadIdx.x % 32 < 4 && c < e.columns) publish_${ r.how }(e.${ r.op } + c, total);
  }
}
