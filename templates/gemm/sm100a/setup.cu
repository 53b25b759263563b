extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage
const int warp = threadIdx.x / 32;
if (threadIdx.x == 0) {
/*% for p in plan.pipelines %*/
/*% if p.depth > 1 %*/
  for (int slot = 0; slot < ${ {"operands": "STAGES", "accumulators": "ACC_SLOTS", "answers": "CLC_SLOTS"}[p.name] }; ++slot) {
/*% for b in p.barriers %*/
    mbarrier_init(smem.${ b.name }[slot], ${ arrivals(b) });
/*% endfor %*/
  }
/*% else %*/
/*% for b in p.barriers %*/
  mbarrier_init(smem.${ b.name }[0], ${ arrivals(b) });
/*% endfor %*/
/*% endif %*/
/*% endfor %*/
  fence_mbarrier_init();
}
