const int slot = consumer * ACCUMULATORS + acc.slot;
mbarrier_wait(smem.acc_full[slot], acc.phase);
tcgen05_fence_after();
${ part(plan.parts.store_call, acc="tmem + slot * BLOCK_N", row="tile.row + consumer * CONSUMER_M", store_warp="warp") }
acc.advance();
