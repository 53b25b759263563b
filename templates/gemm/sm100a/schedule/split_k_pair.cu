const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
const int splits = splits_of(k);
for (int unit = blockIdx.x / CLUSTER_SIZE; unit < tiles_m * tiles_n * splits; unit += gridDim.x / CLUSTER_SIZE) {
  const int index = unit / splits;
  const KRange range = k_range(unit % splits, splits, k);
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
