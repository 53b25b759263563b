struct KRange { int split, begin, end; };  // the columns of A and B that one split multiplies; `end` may lie past K
// No split is empty: where K has fewer k tiles than SPLIT_K, there are fewer splits.
DEVICE int splits_of(int k) { return min(SPLIT_K, (k + BLOCK_K - 1) / BLOCK_K); }
DEVICE KRange k_range(int split, int splits, int k) {
  const int64_t k_tiles = (k + BLOCK_K - 1) / BLOCK_K;
  return {split, int(split * k_tiles / splits) * BLOCK_K, int((split + 1) * k_tiles / splits) * BLOCK_K};
}
