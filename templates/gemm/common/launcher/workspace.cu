// Strips of 32 rows of a tile: each has a counter, and room for what every split has summed.
static int64_t strips(int64_t m, int64_t n) {
  return (m + TILE_ROWS - 1) / TILE_ROWS * (TILE_ROWS / STORE_ROWS) * ((n + BLOCK_N - 1) / BLOCK_N);
}
static int64_t counter_bytes(int64_t m, int64_t n) { return (strips(m, n) * 4 + 127) / 128 * 128; }
static int64_t workspace_bytes(int64_t m, int64_t n) {
  return counter_bytes(m, n) + strips(m, n) * SPLIT_K * STORE_ROWS * BLOCK_N * 4;
}
