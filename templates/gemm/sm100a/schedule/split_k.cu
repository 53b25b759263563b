const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
const int splits = splits_of(k);
for (int unit = blockIdx.x; unit < tiles_m * tiles_n * splits; unit += gridDim.x) {
  const int index = unit / splits;
  const KRange range = k_range(unit % splits, splits, k);
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
