if (threadIdx.x == 0) {
  for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
    mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);  // the buffer starts empty: the first wait must pass
    load_k_tile(smem, ring.slot, map_a, map_b, tile, k0);
    mbarrier_wait(smem.full[ring.slot], ring.phase);
    tcgen05_fence_after();
    multiply(tmem, smem.a[ring.slot], smem.b[ring.slot], k0 > 0);
    tcgen05_commit(smem.empty[ring.slot]);
    ring.advance();
  }
  tcgen05_commit(smem.acc_full[0]);
}
mbarrier_wait(smem.acc_full[0], phase);
phase ^= 1;
