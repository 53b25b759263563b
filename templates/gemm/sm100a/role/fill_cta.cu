mbarrier_arrive_expect_tx(smem.full[ring.slot], STAGE_BYTES);
tma_load(smem.a[ring.slot], map_a, smem.full[ring.slot], k0, tile.row);
tma_load(smem.b[ring.slot], map_b, smem.full[ring.slot], k0, tile.column);
