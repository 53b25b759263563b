// One k tile into the accumulator at `acc`: MMA_K columns of A and B at a time, issued by one thread. Stepping along K
// inside a swizzled row is a plain addition of 32 bytes, because the swizzle acts on the final address.
DEVICE void multiply(uint32_t acc, const Input *a, const Input *b, bool accumulate) {
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += MMA_K)
    tcgen05_mma(acc, ${ part(plan.parts.step_a, operand="a") }, ${ part(plan.parts.step_b, operand="b") }, accumulate || k > 0);
}
