const int slot = consumer * ACCUMULATORS + acc.slot;
mbarrier_wait(smem.acc_full[slot], acc.phase);
tcgen05_fence_after();
const int64_t strip = int64_t(index) * 4 * NUM_CONSUMERS + warp;  // 32 rows of a tile, a warp's
${ part("gemm/sm100a/split_k/last_stores.cu") }
acc.advance();
