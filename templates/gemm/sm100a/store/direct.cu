/*% if plan.finish %*/
${ part("gemm/common/epilogue/finish.cu") }

/*% endif %*/
// Writes D from this warp's 32 lanes of the accumulator at `acc`, a row per thread; what lies outside the matrix
// is left out.
DEVICE void store(uint32_t acc, /*% if "release" in plan.parts %*/uint64_t &acc_empty, /*% endif %*/Output *d, int64_t ldd, int row, int column, int m, int n${ ",\n                  const Epilogue &e" if plan.finish }) {
  const int first_lane = threadIdx.x / 32 % 4 * 32, r = row + first_lane + threadIdx.x % 32;
  for (int c = 0; c < ${ plan.out_n }; c += CHUNK) {
    float v[CHUNK];
    ${ part(plan.parts.source, depth=2, row="r", column="column + c") }
/*% if plan.finish and not plan.pairs %*/
    finish_row(v, r, column + c, e);
/*% endif %*/
/*% if plan.finish %*/
/*% for r in plan.finish.reductions %*/
    reduce_${ r.op }(v, r, column + c, e);
/*% endfor %*/
/*% endif %*/
#pragma unroll
    for (int i = 0; i < CHUNK; ++i)
      if (r < m && column + c + i < n) d[r * ldd + column + c + i] = Output(v[i]);
  }
}
