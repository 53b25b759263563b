Accumulators acc;
int previous = ring.stage;
for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  mbarrier_wait(smem.full[ring.stage], ring.phase);
  multiply(acc, smem.a[ring.stage] + consumer * CONSUMER_M * BLOCK_K, smem.b[ring.stage], k0 > 0);
  wgmma_wait<1>();  // this group stays in flight; the one before it has read its stage
  if (k0 > 0) release(smem.empty[previous]);
  previous = ring.stage;
  ring.advance();
}
wgmma_wait<0>();
release(smem.empty[previous]);
pin(acc);
${ part(plan.parts.store_call, row="tile.row + consumer * CONSUMER_M", store_warp="warp") }
