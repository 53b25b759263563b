// Waits for launch control's answer and reads it: the tile to compute next, or -1 where none is left. By one thread,
// which tells the pair's first CTA, where the answers are asked for.
DEVICE int next_tile(SharedStorage &smem, Cursor<CLC_SLOTS> &clc) {
  mbarrier_wait(smem.clc_full[clc.slot], clc.phase);
  const int first = clc_first_cta(smem.clc[clc.slot]);
  fence_proxy_async();  // the answer has been read before launch control writes the next one here
  mbarrier_arrive_cluster(smem.clc_empty[clc.slot], 0);
  clc.advance();
  return first < 0 ? -1 : first / CLUSTER_SIZE;
}
