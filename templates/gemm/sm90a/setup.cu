extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage
/*% if plan.barriers %*/
if (threadIdx.x == 0) {
  for (int stage = 0; stage < STAGES; ++stage) {
/*% for b in plan.barriers %*/
    mbarrier_init(smem.${ b.name }[stage], ${ arrivals(b) });
/*% endfor %*/
  }
  fence_mbarrier_init();
}
/*% endif %*/
