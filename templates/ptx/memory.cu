/*% macro smem_address() %*/
DEVICE uint32_t smem_address(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }
/*% endmacro %*/

/*% macro fence_proxy_async() %*/
// Makes this thread's writes to shared memory visible to the TMA engine and the tensor core.
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/*% endmacro %*/

/*% macro stmatrix_x4() %*/
// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
DEVICE void stmatrix_x4(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
/*% endmacro %*/
