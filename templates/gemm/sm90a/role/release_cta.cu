// This warp has read a stage.
DEVICE void release(uint64_t &empty) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}
