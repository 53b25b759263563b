if (cluster_rank() == 0) mbarrier_arrive_expect_tx(smem.full[ring.slot], STAGE_BYTES);  // for both CTAs
${ part(plan.parts.copy_a, load="tma_load_pair", operand="a", row="tile.row", rows="BLOCK_M") }
${ part(plan.parts.copy_b, load="tma_load_pair", operand="b", row="tile.column + cluster_rank() * B_SLICE", rows="B_SLICE") }
/*% if "copy_scales" in plan.parts %*/
${ part(plan.parts.copy_scales, load="tma_load_pair") }
/*% endif %*/
