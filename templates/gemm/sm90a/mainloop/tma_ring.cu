if (threadIdx.x == 0) {
  RingCursor fill = ring;
  for (int k0 = 0; k0 < min(k, STAGES * BLOCK_K); k0 += BLOCK_K) {
    load_k_tile(smem, fill.stage, map_a, map_b, tile, k0);
    fill.advance();
  }
}
int previous = ring.stage;
for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  mbarrier_wait(smem.full[ring.stage], ring.phase);
  multiply(acc, smem.a[ring.stage], smem.b[ring.stage], k0 > 0);
  wgmma_wait<1>();  // the k tile before this one has been read
  __syncthreads();  // by every warp, so its stage takes the tile one lap ahead
  const int refill = k0 + (STAGES - 1) * BLOCK_K;
  if (threadIdx.x == 0 && k0 > 0 && refill < k) load_k_tile(smem, previous, map_a, map_b, tile, refill);
  previous = ring.stage;
  ring.advance();
}
wgmma_wait<0>();
__syncthreads();  // the whole ring may be overwritten
