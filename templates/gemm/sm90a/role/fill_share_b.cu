tma_load(smem.a[ring.stage], map_a, smem.full[ring.stage], k0, tile.row);
tma_load_multicast(smem.b[ring.stage] + slice * BLOCK_K, map_b, smem.full[ring.stage], k0,
                   tile.column + slice, ALL_CTAS);
