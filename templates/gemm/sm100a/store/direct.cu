// Writes D from this warp's 32 lanes of the accumulator at `acc`, a row per thread; what lies outside the matrix
// is left out.
DEVICE void store(uint32_t acc, /*% if "release" in plan.parts %*/uint64_t &acc_empty, /*% endif %*/Output *d, int64_t ldd, /*% if "factor" in plan.parts %*/float scale, /*% endif %*/int row, int column, int m, int n) {
  const int first_lane = threadIdx.x / 32 % 4 * 32, r = row + first_lane + threadIdx.x % 32;
  for (int c = 0; c < BLOCK_N; c += CHUNK) {
    float v[CHUNK];
    ${ part("gemm/sm100a/store/from_tmem.cu", depth=2) }
/*% if "factor" in plan.parts %*/
    ${ part(plan.parts.factor, depth=2) }
/*% endif %*/
#pragma unroll
    for (int i = 0; i < CHUNK; ++i)
      if (r < m && column + c + i < n) d[r * ldd + column + c + i] = Output(v[i]);
  }
}
