if (warp == ${ warp }) {  // one warp of the CTA, which will also free
  tcgen05_alloc(smem.tmem[0], TMEM_COLUMNS);
  tcgen05_relinquish();  // others on this SM may allocate now
}
tcgen05_fence_before();
${ part(plan.parts.sync) }
tcgen05_fence_after();
const uint32_t tmem = smem.tmem[0];
