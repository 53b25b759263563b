tma_load_multicast(smem.b[ring.stage] + slice * BLOCK_K, map_b, smem.full[ring.stage], k0,
                   tile.column + slice, ALL_CTAS);  // first: its way to the other CTA is the longer one
tma_load(smem.a[ring.stage], map_a, smem.full[ring.stage], k0, tile.row);
