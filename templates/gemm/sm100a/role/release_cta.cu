// This warp has read its lanes of an accumulator.
DEVICE void release(uint64_t &acc_empty) {
  tcgen05_fence_before();
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(acc_empty);
}
