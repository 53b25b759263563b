for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);  // the ring starts empty: the first lap must pass
  ${ part(plan.parts.fill, depth=1) }
  ring.advance();
}
