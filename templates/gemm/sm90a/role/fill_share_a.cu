tma_load_multicast(smem.a[ring.stage] + slice * BLOCK_K, map_a, smem.full[ring.stage], k0,
                   tile.row + slice, ALL_CTAS);  // first: its way to the other CTA is the longer one
tma_load(smem.b[ring.stage], map_b, smem.full[ring.stage], k0, tile.column);
