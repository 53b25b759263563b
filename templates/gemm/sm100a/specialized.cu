${ part("gemm/common/tile.cu") }
/*% if "order" in plan.parts %*/
${ part(plan.parts.order) }

/*% endif %*/
${ part("gemm/sm100a/cursor.cu") }

${ part(plan.parts.mma_k_tile) }

${ part(plan.parts.release) }
/*% if "request" in plan.parts %*/

${ part(plan.parts.next_tile) }

${ part("gemm/sm100a/role/next_tile_of_warp.cu") }
/*% endif %*/

/*% if "workspace" in plan.parts %*/
${ part(plan.parts.k_range) }

${ part(plan.parts.share) }

/*% endif %*/
${ part(plan.parts.store) }

static __global__ void ${ part("gemm/common/cluster_dims.cu") }__launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(${ part("gemm/common/parameters.cu") }) {
  ${ part("gemm/sm100a/setup.cu", depth=1) }
/*% if plan.pair %*/
  cluster_sync();  // both CTAs run, before either takes part in an allocation
/*% endif %*/
  ${ part("gemm/sm100a/allocate.cu", depth=1, warp="MMA_WARP") }

  if (warp == PRODUCER_WARP) {
    // Producer: one thread keeps the ring full.
/*% if plan.split_registers %*/
    setmaxnreg_dec<CONTROL_REGISTERS>();
/*% endif %*/
    if (elect_one()) {
      Cursor<STAGES> ring;
      ${ part(plan.parts.schedule, depth=3, next_tile="next_tile", body=part("gemm/sm100a/role/producer.cu")) }
      ${ part("gemm/sm100a/role/producer_drain.cu", depth=3) }
    }
/*% if "request" in plan.parts %*/
  ${ part("gemm/sm100a/role/scheduler_branch.cu", depth=1) }
/*% endif %*/
  } else if (warp >= MMA_WARP) {
    // Issuers: one thread${ " of the pair" if plan.pair } per consumer multiplies k tiles as they land.
/*% if plan.split_registers %*/
    setmaxnreg_dec<CONTROL_REGISTERS>();
/*% endif %*/
    const int consumer = warp - MMA_WARP;
    if (${ "consumer < NUM_CONSUMERS && " if plan.roles[-1].name == "idle" }${ part(plan.parts.mma) }) {
      Cursor<STAGES> ring;
      Cursor<ACCUMULATORS> acc;
/*% if "order" in plan.parts %*/
      ${ part(plan.parts.schedule, depth=3, next_tile="next_tile", body=part("gemm/sm100a/role/mma.cu")) }
/*% else %*/
      ${ part("gemm/sm100a/role/mma.cu", depth=3) }
/*% endif %*/
    }
  } else {
    // Epilogue: one warpgroup per consumer stores what its issuer has multiplied.
/*% if plan.split_registers %*/
    setmaxnreg_inc<EPILOGUE_REGISTERS>();
/*% endif %*/
    const int consumer = warp / 4;
    Cursor<ACCUMULATORS> acc;
/*% if "stage" in plan.parts %*/
    int turn = 0;
/*% endif %*/
    ${ part(plan.parts.schedule, depth=2, next_tile="next_tile_of_warp", body=part(plan.parts.epilogue)) }
/*% if "stage" in plan.parts %*/
    ${ part("gemm/common/store_drain.cu", depth=2) }
/*% endif %*/
  }
  ${ part("gemm/sm100a/free.cu", depth=1, warp="MMA_WARP") }
}
