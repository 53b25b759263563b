tcgen05_fence_before();
${ part(plan.parts.sync) }
if (warp == ${ warp }) {
  tcgen05_fence_after();
  tcgen05_dealloc(tmem, TMEM_COLUMNS);
}
