/*% macro mbarrier_init() %*/
DEVICE void mbarrier_init(uint64_t &bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem_address(&bar)), "r"(arrivals) : "memory");
}
/*% endmacro %*/

/*% macro fence_mbarrier_init() %*/
// Makes initialised barriers visible to the TMA engine and to the other CTAs of a cluster.
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/*% endmacro %*/

/*% macro mbarrier_arrive() %*/
DEVICE void mbarrier_arrive(uint64_t &bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(smem_address(&bar)) : "memory");
}
/*% endmacro %*/

/*% macro mbarrier_arrive_cluster() %*/
// Arrives on the barrier at the same place in CTA `rank` of the cluster. It carries no data, only the fact that reads
// are over, so CTA scope will do; cluster scope would flush caches on every k tile.
DEVICE void mbarrier_arrive_cluster(uint64_t &bar, int rank) {
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(smem_address(&bar)), "r"(rank) : "memory");
}
/*% endmacro %*/

/*% macro mbarrier_arrive_expect_tx_cluster() %*/
// Arrives on the barrier at the same place in CTA `rank` of the cluster, which then waits for so many bytes as well.
DEVICE void mbarrier_arrive_expect_tx_cluster(uint64_t &bar, uint32_t tx, int rank) {
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %2;\n"
               "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [remote], %1;\n}"
               :: "r"(smem_address(&bar)), "r"(tx), "r"(rank) : "memory");
}
/*% endmacro %*/

/*% macro mbarrier_arrive_expect_tx() %*/
DEVICE void mbarrier_arrive_expect_tx(uint64_t &bar, uint32_t tx) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_address(&bar)), "r"(tx) : "memory");
}
/*% endmacro %*/

/*% macro mbarrier_wait() %*/
DEVICE void mbarrier_wait(uint64_t &bar, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\n"
               "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra WAIT;\n}" :: "r"(smem_address(&bar)), "r"(parity) : "memory");
}
/*% endmacro %*/
