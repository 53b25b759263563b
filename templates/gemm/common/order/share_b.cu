// The order in which clusters compute tiles: GROUP_M rows of cluster tiles are walked one column at a time, so that
// clusters running at the same time share panels of A and B in L2. Each CTA takes its share of the cluster's tile.
DEVICE Tile tile_at(int index, int tiles_m, int tiles_n) {
  ${ part(plan.parts.walk, depth=1) }
  return {tile_m * TILE_M + cluster_rank() * BLOCK_M, tile_n * TILE_N};
}
