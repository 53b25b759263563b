// Writes 32 columns of this warp's 16 rows to swizzled shared memory, two neighbours at a time.
DEVICE void stage(Output *box, const float *acc) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < STORE_COLUMNS / 4; ++i) {
    const int row = lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
    const int chunk = column / 4 ^ row % 8;  // 16-byte chunks are permuted within the 128-byte row
    *reinterpret_cast<float2 *>(box + row * STORE_COLUMNS + chunk * 4 + column % 4) = {acc[2 * i], acc[2 * i + 1]};
  }
}
