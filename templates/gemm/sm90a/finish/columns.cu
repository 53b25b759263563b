DEVICE int row_in_part(int i) { return threadIdx.x % 32 / 4 + i / 2 % 2 * 8; }
DEVICE int column_in_part(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }

// Finishes what this lane holds of a warp's 16 rows: COUNT elements, 4 of every 8 columns.
template <int COUNT>
DEVICE void finish_part(float (&v)[COUNT], const float *acc, int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) v[i] = finish(acc[i], row + row_in_part(i), column + column_in_part(i), e);
}
