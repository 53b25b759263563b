${ part("gemm/common/tile.cu") }
/*% if "order" in plan.parts %*/
${ part(plan.parts.order) }

/*% endif %*/
${ part("gemm/sm90a/ring.cu") }

${ part("gemm/sm90a/accumulators.cu") }

${ part(plan.parts.mma) }

${ part(plan.parts.release) }

${ part(plan.parts.store) }

static __global__ void ${ part("gemm/common/cluster_dims.cu") }__launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(${ part("gemm/common/parameters.cu") }) {
  ${ part("gemm/sm90a/setup.cu", depth=1) }
  ${ part(plan.parts.sync, depth=1) }

  const int warp = threadIdx.x / 32;
  RingCursor ring;
  if (warp >= 4 * NUM_CONSUMERS) {
    // Producer: one thread keeps the ring full.
/*% if plan.split_registers %*/
    setmaxnreg_dec<PRODUCER_REGISTERS>();
/*% endif %*/
    if (warp == 4 * NUM_CONSUMERS && elect_one()) {
/*% if "slice" in plan.parts %*/
      ${ part(plan.parts.slice, depth=3) }
/*% endif %*/
      ${ part(plan.parts.schedule, depth=3, body=part("gemm/sm90a/role/producer.cu")) }
    }
  } else {
    // Consumers: multiply k tiles as they land, then store.
/*% if plan.split_registers %*/
    setmaxnreg_inc<CONSUMER_REGISTERS>();
/*% endif %*/
    const int consumer = warp / 4;
/*% if "stage" in plan.parts %*/
    int turn = 0;
/*% endif %*/
    ${ part(plan.parts.schedule, depth=2, body=part("gemm/sm90a/role/consumer.cu")) }
/*% if "stage" in plan.parts %*/
    ${ part("gemm/common/store_drain.cu", depth=2) }
/*% endif %*/
  }
/*% if "leave" in plan.parts %*/
  ${ part(plan.parts.leave, depth=1) }
/*% endif %*/
}
