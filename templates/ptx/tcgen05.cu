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

/*% macro tcgen05_mma() %*/
// D[MMA_M, BLOCK_N] (+)= A[MMA_M, MMA_K] * B[BLOCK_N, MMA_K]; `accumulate` = 0 overwrites D.
DEVICE void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
               "tcgen05.mma.cta_group::${ plan.cta_group }.kind::f16 [%0], %1, %2, %3, p;\n}"
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
