for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  mbarrier_wait(smem.empty[ring.stage], ring.phase ^ 1);  // the ring starts empty: the first lap must pass
  mbarrier_arrive_expect_tx(smem.full[ring.stage], STAGE_BYTES);
  ${ part(plan.parts.fill, depth=1) }
  ring.advance();
}
