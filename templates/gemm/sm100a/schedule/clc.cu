const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
Cursor<CLC_SLOTS> clc;
for (int index = blockIdx.x; index >= 0; index = ${ next_tile }(smem, clc)) {
  const Tile tile = tile_at(index, tiles_m, tiles_n);
  ${ body | indent(2) }
}
