DEVICE int row_in_part(int i) { return threadIdx.x % 32 / 4 + i % 2 * 8; }
DEVICE int column_in_part(int i) { return i / 2 * 4 + threadIdx.x % 4; }

// Finishes what this lane holds of a warp's 16 rows: COUNT elements, 2 of every 4 columns, each from two accumulators.
template <int COUNT>
DEVICE void finish_part(float (&v)[COUNT], const float *acc, int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    v[i] = finish(acc[2 * i], acc[2 * i + 1], row + row_in_part(i), column + column_in_part(i), e);
}
