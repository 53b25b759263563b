tma_load(smem.a[ring.stage], map_a, smem.full[ring.stage], k0, tile.row);
tma_load(smem.b[ring.stage], map_b, smem.full[ring.stage], k0, tile.column);
