// The order in which tiles are computed: GROUP_M rows of tiles are walked one column at a time, so that CTAs running at
// the same time share panels of A and B in L2.
DEVICE Tile tile_at(int index, int tiles_m, int tiles_n) {
  ${ part(plan.parts.walk, depth=1) }
  return {tile_m * BLOCK_M, tile_n * BLOCK_N};
}
