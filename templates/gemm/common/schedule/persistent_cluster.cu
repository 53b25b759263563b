const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
for (int index = blockIdx.x / CLUSTER_SIZE; index < tiles_m * tiles_n; index += gridDim.x / CLUSTER_SIZE) {
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
