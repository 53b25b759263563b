// One thread announces a k tile's bytes and asks the TMA engine for them.
DEVICE void load_k_tile(SharedStorage &smem, int stage, const CUtensorMap &map_a, const CUtensorMap &map_b,
                        const Tile &tile, int k0) {
  mbarrier_arrive_expect_tx(smem.full[stage], STAGE_BYTES);
  tma_load(smem.a[stage], map_a, smem.full[stage], k0, tile.row);
  tma_load(smem.b[stage], map_b, smem.full[stage], k0, tile.column);
}
