// One k tile: 16 columns of A and B at a time, for each 64 rows of the warpgroup. Stepping 16 columns inside a swizzled
// row is a plain addition of 32 bytes, because the swizzle acts on the final address.
DEVICE void multiply(Accumulators &acc, const Input *a, const Input *b, bool accumulate) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += 16) {
#pragma unroll
    for (int block = 0; block < M_BLOCKS; ++block)
      wgmma(acc[block], wgmma_descriptor(a + block * 64 * BLOCK_K + k), wgmma_descriptor(b + k), accumulate || k > 0);
  }
  wgmma_commit();
}
