// Reduces a thread's CHUNK columns of its row, then with whoever else has elements of the row.
DEVICE void reduce_${ r.op }(const float (&v)[CHUNK], int row, int column, const Epilogue &e) {
  float total = 0;
#pragma unroll
  for (int i = 0; i < CHUNK; ++i)
    if (column + i < e.columns) total = combine_${ r.how }(total, v[i]);
  if (row < e.rows) publish_${ r.how }(e.${ r.op } + row, total);
}
