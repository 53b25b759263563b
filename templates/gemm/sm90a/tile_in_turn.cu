Accumulators acc;
${ part(plan.parts.mainloop) }
pin(acc);
${ part(plan.parts.store_call, row="tile.row", store_warp="threadIdx.x / 32") }
