} else if (warp == SCHEDULER_WARP) {
  // Scheduler: one thread${ " of the pair" if plan.pair } asks launch control for tiles.
/*% if plan.split_registers %*/
  setmaxnreg_dec<CONTROL_REGISTERS>();
/*% endif %*/
  if (${ part(plan.parts.mma) }) {
    ${ part("gemm/sm100a/role/scheduler.cu", depth=2) }
  }
