const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
for (int index = blockIdx.x; index < tiles_m * tiles_n; index += gridDim.x) {
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
