// This warp has read a stage; every CTA that may write to it by multicast must know.
DEVICE void release(uint64_t &empty) {
  if (threadIdx.x % 32 < CLUSTER_SIZE) mbarrier_arrive_cluster(empty, threadIdx.x % 32);
}
