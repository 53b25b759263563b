/*% macro wgmma_descriptor() %*/
// Describes an operand in 128-byte swizzled rows. Addresses and strides are in units of 16 bytes.
DEVICE uint64_t wgmma_descriptor(const void *tile) {
  constexpr uint64_t SWIZZLE_128B = 1ull << 62, ROW_GROUP_STRIDE = 1024 >> 4;  // from eight rows to the next eight
  return SWIZZLE_128B | ROW_GROUP_STRIDE << 32 | smem_address(tile) >> 4;
}
/*% endmacro %*/

/*% macro wgmma_fence() %*/
// Orders this warpgroup's register accesses before the wgmmas that follow.
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/*% endmacro %*/

/*% macro wgmma_commit() %*/
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/*% endmacro %*/

/*% macro wgmma_wait() %*/
// Waits until at most N wgmma groups of this warpgroup are in flight.
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
/*% endmacro %*/

/*% macro wgmma() %*/
/*% set registers = plan.mma_shape[1] // 2 %*/
// D[64, BLOCK_N] (+)= A[64, 16] * B[BLOCK_N, 16]; `accumulate` = 0 overwrites D.
DEVICE void wgmma(float (&d)[BLOCK_N / 2], uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %${ registers + 2 }, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n${ plan.mma_shape[1] }k16.f32.${ plan.input.ptx }.${ plan.input.ptx } {"
/*% for line in numbered("%{}", registers, 16) %*/
               "${ line }${ "}, " if loop.last else ", " }"
/*% endfor %*/
               "%${ registers }, %${ registers + 1 }, p, 1, 1, 0, 0;\n}"
/*% for line in numbered('"+f"(d[{}])', registers, 8) %*/
      ${ ": " if loop.first else "  " }${ line }${ "" if loop.last else "," }
/*% endfor %*/
      : "l"(a), "l"(b), "r"(accumulate));
}
/*% endmacro %*/
