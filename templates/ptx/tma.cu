/*% macro tma_load() %*/
// Copies the box at column x, row y to shared memory; its bytes count towards `full`. Outside the matrix it reads zero.
DEVICE void tma_load(void *box, const CUtensorMap &map, uint64_t &full, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];"
               :: "r"(smem_address(box)), "l"(&map), "r"(smem_address(&full)), "r"(x), "r"(y) : "memory");
}
/*% endmacro %*/

/*% macro tma_load_multicast() %*/
// As tma_load, to the same place in every CTA of `mask`; the `full` of each counts the bytes.
DEVICE void tma_load_multicast(void *box, const CUtensorMap &map, uint64_t &full, int x, int y, uint16_t mask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%3, %4}], [%2], %5;"
               :: "r"(smem_address(box)), "l"(&map), "r"(smem_address(&full)), "r"(x), "r"(y), "h"(mask) : "memory");
}
/*% endmacro %*/

/*% macro tma_load_pair() %*/
// As tma_load; the bytes count towards the `full` of the pair's first CTA, whichever CTA they land in.
DEVICE void tma_load_pair(void *box, const CUtensorMap &map, uint64_t &full, int x, int y) {
  asm volatile("{\n.reg .b32 first;\nmapa.shared::cluster.u32 first, %2, 0;\n"
               "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [first];\n}"
               :: "r"(smem_address(box)), "l"(&map), "r"(smem_address(&full)), "r"(x), "r"(y) : "memory");
}
/*% endmacro %*/

/*% macro tma_store() %*/
// Copies a box from shared memory to column x, row y; what lies outside the matrix is not written.
DEVICE void tma_store(const CUtensorMap &map, const void *box, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               :: "l"(&map), "r"(smem_address(box)), "r"(x), "r"(y) : "memory");
}
/*% endmacro %*/

/*% macro bulk_commit() %*/
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/*% endmacro %*/

/*% macro bulk_wait_read() %*/
// Waits until at most N of this thread's store groups still read shared memory.
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
/*% endmacro %*/
