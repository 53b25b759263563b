// Writes 128 columns of this warp's 16 rows to swizzled shared memory, two neighbours at a time, rounded to D's type
// and saturating.
DEVICE void stage(Output *box, const float *v) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < STORE_COLUMNS / 4; ++i) {
    const int row = lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
    const int chunk = column / STORE_STEP ^ row % 8;  // 16-byte chunks are permuted within the 128-byte row
    *reinterpret_cast<uint16_t *>(box + row * STORE_COLUMNS + chunk * STORE_STEP + column % STORE_STEP) =
        __nv_cvt_float2_to_fp8x2({v[2 * i], v[2 * i + 1]}, __NV_SATFINITE, __NV_${ plan.output.name | upper });
  }
}
