/*% macro tcgen05_alloc() %*/
// Allocates tensor memory, by one whole warp${ " in each CTA of the pair" if plan.pair }; its address lands in `where`.
DEVICE void tcgen05_alloc(uint32_t &where, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::${ plan.cta_group }.sync.aligned.shared::cta.b32 [%0], %1;"
               :: "r"(smem_address(&where)), "r"(columns) : "memory");
}
/*% endmacro %*/

/*% macro tcgen05_relinquish() %*/
DEVICE void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::${ plan.cta_group }.sync.aligned;" ::: "memory");
}
/*% endmacro %*/

/*% macro tcgen05_dealloc() %*/
DEVICE void tcgen05_dealloc(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::${ plan.cta_group }.sync.aligned.b32 %0, %1;" :: "r"(address), "r"(columns) : "memory");
}
/*% endmacro %*/

/*% macro tcgen05_fence_before() %*/
// Orders this thread's accesses to tensor memory before the barrier that follows, for those who wait there ...
DEVICE void tcgen05_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
/*% endmacro %*/

/*% macro tcgen05_fence_after() %*/
// Orders this thread's accesses to tensor memory after the barrier that it has passed.
DEVICE void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
/*% endmacro %*/

/*% macro tcgen05_descriptor() %*/
// Describes an operand in 128-byte swizzled rows. Addresses and strides are in units of 16 bytes; of an address only
// its place in the CTA counts.
DEVICE uint64_t tcgen05_descriptor(const void *tile) {
  constexpr uint64_t SWIZZLE_128B = 2ull << 61, VERSION = 1ull << 46;
  constexpr uint64_t ROW_GROUP_STRIDE = 1024 >> 4;  // from eight rows to the next eight
  return SWIZZLE_128B | VERSION | ROW_GROUP_STRIDE << 32 | (smem_address(tile) & 0x3ffff) >> 4;
}
/*% endmacro %*/

/*% macro tcgen05_descriptor_mn() %*/
// Describes an operand whose rows run along 128-byte swizzled rows, a box of BOX_MN of them behind another; k steps
// from one swizzled row to the next.
DEVICE uint64_t tcgen05_descriptor_mn(const void *tile) {
  constexpr uint64_t SWIZZLE_128B = 2ull << 61, VERSION = 1ull << 46;
  constexpr uint64_t K_GROUP_STRIDE = 1024 >> 4, BOX_STRIDE = 128 * BLOCK_K >> 4;  // eight steps of k; the next box
  const uint64_t start = (smem_address(tile) & 0x3ffff) >> 4;
  return SWIZZLE_128B | VERSION | K_GROUP_STRIDE << 32 | BOX_STRIDE << 16 | start;
}
/*% endmacro %*/

/*% macro tcgen05_copy() %*/
// Copies an atom of scales from shared memory to four columns of tensor memory: 32 rows of 16 bytes, to each quarter of
// the lanes. Not swizzled; from eight rows to the next eight are 128 bytes.
DEVICE void tcgen05_copy(uint32_t columns, const void *atom) {
  const uint64_t from = 1ull << 46 | uint64_t(128 >> 4) << 32 | (smem_address(atom) & 0x3ffff) >> 4;
  asm volatile("tcgen05.cp.cta_group::${ plan.cta_group }.32x128b.warpx4 [%0], %1;" :: "r"(columns), "l"(from) : "memory");
}
/*% endmacro %*/

/*% macro tcgen05_mma_scaled() %*/
// As tcgen05_mma, each block of ${ plan.scales.block if plan.scales } products along K times its scales: those of A and B are at `sfa` and `sfb`.
DEVICE void tcgen05_mma_scaled(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t sfa, uint32_t sfb,
                               int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
               "tcgen05.mma.cta_group::${ plan.cta_group }.kind::${ plan.kind }.block_scale.block${ plan.scales.block if plan.scales } "
               "[%0], %1, %2, %3, [%4], [%5], p;\n}"
               :: "r"(d), "l"(a), "l"(b), "r"(instruction), "r"(sfa), "r"(sfb), "r"(accumulate) : "memory");
}
/*% endmacro %*/

/*% macro tcgen05_mma() %*/
// D[MMA_M, BLOCK_N] (+)= A[MMA_M, MMA_K] * B[BLOCK_N, MMA_K]; `accumulate` = 0 overwrites D.
DEVICE void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
               "tcgen05.mma.cta_group::${ plan.cta_group }.kind::${ plan.kind } [%0], %1, %2, %3, p;\n}"
               :: "r"(d), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(accumulate) : "memory");
}
/*% endmacro %*/

/*% macro tcgen05_commit() %*/
/*% if plan.pair %*/
// Arrives on `bar` of both CTAs once every MMA that this thread has issued so far is complete.
DEVICE void tcgen05_commit(uint64_t &bar) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
               :: "r"(smem_address(&bar)), "h"(static_cast<uint16_t>(PAIR)) : "memory");
}
/*% else %*/
// Arrives on `bar` once every MMA that this thread has issued so far is complete.
DEVICE void tcgen05_commit(uint64_t &bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :: "r"(smem_address(&bar)) : "memory");
}
/*% endif %*/
/*% endmacro %*/

/*% macro tcgen05_load() %*/
// CHUNK columns of the 32 lanes from `address` on, a lane per thread; `v` may be read after tcgen05_wait_load.
DEVICE void tcgen05_load(float (&v)[CHUNK], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x${ plan.chunk }.b32 {"
/*% for line in numbered("%{}", plan.chunk, 16) %*/
               "${ line }${ "}, " if loop.last else ", " }"
/*% endfor %*/
               "[%${ plan.chunk }];"
/*% for line in numbered('"=f"(v[{}])', plan.chunk, 8) %*/
      ${ ": " if loop.first else "  " }${ line }${ "" if loop.last else "," }
/*% endfor %*/
      : "r"(address));
}
/*% endmacro %*/

/*% macro tcgen05_wait_load() %*/
DEVICE void tcgen05_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
/*% endmacro %*/
