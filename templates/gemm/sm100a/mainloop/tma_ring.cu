if (threadIdx.x == 0) {
  for (int k0 = 0; k0 < min(k, STAGES * BLOCK_K); k0 += BLOCK_K) {
    mbarrier_wait(smem.empty[fill.slot], fill.phase ^ 1);  // the ring starts empty: the first lap must pass
    load_k_tile(smem, fill.slot, map_a, map_b, tile, k0);
    fill.advance();
  }
  for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
    mbarrier_wait(smem.full[ring.slot], ring.phase);
    tcgen05_fence_after();
    multiply(tmem, smem.a[ring.slot], smem.b[ring.slot], k0 > 0);
    tcgen05_commit(smem.empty[ring.slot]);
    ring.advance();
    const int refill = k0 + (STAGES - 1) * BLOCK_K;
    if (k0 > 0 && refill < k) {  // the stage of the k tile before: this multiply runs on meanwhile
      mbarrier_wait(smem.empty[fill.slot], fill.phase ^ 1);
      load_k_tile(smem, fill.slot, map_a, map_b, tile, refill);
      fill.advance();
    }
  }
  tcgen05_commit(smem.acc_full[0]);
}
mbarrier_wait(smem.acc_full[0], phase);
phase ^= 1;
