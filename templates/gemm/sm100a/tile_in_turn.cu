${ part(plan.parts.mainloop) }
tcgen05_fence_after();
${ part(plan.parts.store_call, acc="tmem", row="tile.row", store_warp="warp") }
/*% if "between" in plan.parts %*/
${ part(plan.parts.between) }
/*% endif %*/
