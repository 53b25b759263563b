mbarrier_arrive_expect_tx(smem.full[ring.slot], STAGE_BYTES);
${ part(plan.parts.copy_a, load="tma_load", operand="a", row="tile.row", rows="BLOCK_M") }
${ part(plan.parts.copy_b, load="tma_load", operand="b", row="tile.column", rows="BLOCK_N") }
/*% if "copy_scales" in plan.parts %*/
${ part(plan.parts.copy_scales, load="tma_load") }
/*% endif %*/
