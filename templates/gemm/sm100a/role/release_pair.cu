// This warp has read its lanes of an accumulator; the CTA that issues the pair's MMAs must know.
DEVICE void release(uint64_t &acc_empty) {
  tcgen05_fence_before();
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive_cluster(acc_empty, 0);
}
