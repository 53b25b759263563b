const int slot = consumer * ACCUMULATORS + acc.slot;
mbarrier_wait(smem.acc_empty[slot], acc.phase ^ 1);  // the accumulators start empty as well
tcgen05_fence_after();
for (int k0 = ${ "range.begin" if "workspace" in plan.parts else 0 }; k0 < ${ "range.end" if "workspace" in plan.parts else "k" }; k0 += BLOCK_K) {
  mbarrier_wait(smem.full[ring.slot], ring.phase);
  tcgen05_fence_after();
  const Input *a = smem.a[ring.slot] + consumer * CONSUMER_M * BLOCK_K;
  ${ part(plan.parts.issue, depth=1) }
  tcgen05_commit(smem.empty[ring.slot]);
  ring.advance();
}
tcgen05_commit(smem.acc_full[slot]);
acc.advance();
