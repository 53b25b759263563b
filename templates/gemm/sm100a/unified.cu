${ part("gemm/common/tile.cu") }
/*% if "order" in plan.parts %*/
${ part(plan.parts.order) }

/*% endif %*/
/*% if "cursors" in plan.parts %*/
${ part("gemm/sm100a/cursor.cu") }

/*% endif %*/
${ part(plan.parts.load) }

${ part(plan.parts.mma_k_tile) }

${ part(plan.parts.store) }

static __global__ void __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(${ part("gemm/common/parameters.cu") }) {
  ${ part("gemm/sm100a/setup.cu", depth=1) }
  ${ part("gemm/sm100a/allocate.cu", depth=1, warp="0") }

/*% if "cursors" in plan.parts %*/
  ${ part(plan.parts.cursors, depth=1) }
/*% endif %*/
  uint32_t phase = 0;  // of acc_full
/*% if "stage" in plan.parts %*/
  int turn = 0;
/*% endif %*/
  ${ part(plan.parts.schedule, depth=1, body=part("gemm/sm100a/tile_in_turn.cu")) }
/*% if "stage" in plan.parts %*/
  ${ part("gemm/common/store_drain.cu", depth=1) }
/*% endif %*/
  ${ part("gemm/sm100a/free.cu", depth=1, warp="0") }
}
