const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
Cursor<CLC_SLOTS> clc;
for (int index = blockIdx.x / CLUSTER_SIZE; index >= 0; index = ${ next_tile }(smem, clc)) {
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
