#include <cstdint>
extern "C" __global__ void __cluster_dims__(2,1,1) steal(int *count, int *who, int n) {
  __shared__ __align__(16) uint4 response;
  __shared__ uint64_t bar;
  uint32_t r = (uint32_t)__cvta_generic_to_shared(&response), b = (uint32_t)__cvta_generic_to_shared(&bar), rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" :: "r"(b)); }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  int x = blockIdx.x;
  for (int phase = 0;; phase ^= 1) {
    if (threadIdx.x == 0) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" :: "r"(b) : "memory"); }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0 && rank == 0) asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];" :: "r"(r), "r"(b) : "memory");
    if (threadIdx.x == 0) { atomicAdd(&count[x], 1); atomicAdd(&who[blockIdx.x], 1); }
    asm volatile("{\n.reg .pred done;\nW: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra W;\n}" :: "r"(b), "r"(phase) : "memory");
    uint32_t ok, cx, cy, cz;
    asm volatile("{\n.reg .b128 q; .reg .pred p;\nld.shared.b128 q, [%4];\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\nselp.u32 %0, 1, 0, p;\n"
      "mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0;\n@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, q;\n}"
      : "=r"(ok), "=r"(cx), "=r"(cy), "=r"(cz) : "r"(r) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (!ok) break;
    x = cx + rank;
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
