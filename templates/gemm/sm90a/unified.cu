${ part("gemm/common/tile.cu") }
/*% if "order" in plan.parts %*/
${ part(plan.parts.order) }

/*% endif %*/
/*% if plan.barriers %*/
${ part("gemm/sm90a/ring.cu") }

/*% endif %*/
${ part("gemm/sm90a/accumulators.cu") }

${ part(plan.parts.load) }

${ part(plan.parts.mma) }

${ part(plan.parts.store) }

static __global__ void __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(${ part("gemm/common/parameters.cu") }) {
  ${ part("gemm/sm90a/setup.cu", depth=1) }
/*% if "sync" in plan.parts %*/
  ${ part(plan.parts.sync, depth=1) }
/*% endif %*/

/*% if plan.barriers %*/
  RingCursor ring;
/*% endif %*/
/*% if "stage" in plan.parts %*/
  int turn = 0;
/*% endif %*/
  ${ part(plan.parts.schedule, depth=1, body=part("gemm/sm90a/tile_in_turn.cu")) }
/*% if "stage" in plan.parts %*/
  ${ part("gemm/common/store_drain.cu", depth=1) }
/*% endif %*/
}
