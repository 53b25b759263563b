// Writes a box of this warp's 16 rows to swizzled shared memory, one element at a time: pairs leave a lane every
// fourth column, which no stmatrix takes.
DEVICE void stage(Output *box, const float *v) {
#pragma unroll
  for (int i = 0; i < STORE_COLUMNS / 2; ++i) {
    const int row = row_in_part(i), column = column_in_part(i);
    const int chunk = column / STORE_STEP ^ row % 8;  // 16-byte chunks are permuted within the 128-byte row
    box[row * STORE_COLUMNS + chunk * STORE_STEP + column % STORE_STEP] = Output(v[i]);
  }
}
