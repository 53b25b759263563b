if (cluster_rank() == 0) mbarrier_arrive_expect_tx(smem.full[ring.slot], STAGE_BYTES);  // for both CTAs
tma_load_pair(smem.a[ring.slot], map_a, smem.full[ring.slot], k0, tile.row);
tma_load_pair(smem.b[ring.slot], map_b, smem.full[ring.slot], k0, tile.column + cluster_rank() * B_SLICE);
