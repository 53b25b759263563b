DEVICE uint32_t pack(float low, float high) {
  const ${ plan.output.ctype }2 pair = __floats2${ plan.output.vector }_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}

// Writes 64 columns of this warp's 16 rows to swizzled shared memory, four 8x8 matrices at a time.
DEVICE void stage(Output *box, const float *v) {
  const int row = threadIdx.x % 16, half = threadIdx.x / 16 % 2;
#pragma unroll
  for (int i = 0; i < STORE_COLUMNS / 16; ++i, v += 8)
    stmatrix_x4(smem_address(box) + row * 128 + ((2 * i + half) ^ row % 8) * 16, pack(v[0], v[1]), pack(v[2], v[3]),
                pack(v[4], v[5]), pack(v[6], v[7]));
}
