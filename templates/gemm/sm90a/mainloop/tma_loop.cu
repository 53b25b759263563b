for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  if (threadIdx.x == 0) load_k_tile(smem, ring.stage, map_a, map_b, tile, k0);
  mbarrier_wait(smem.full[ring.stage], ring.phase);
  multiply(acc, smem.a[ring.stage], smem.b[ring.stage], k0 > 0);
  wgmma_wait<0>();
  __syncthreads();  // every warp has read the k tile; it may be overwritten
  ring.advance();
}
