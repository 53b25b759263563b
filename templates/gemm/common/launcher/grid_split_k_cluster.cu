${ part(plan.parts.ctas) }
const int64_t k_tiles = (int64_t(k) + BLOCK_K - 1) / BLOCK_K, splits = k_tiles < SPLIT_K ? k_tiles : SPLIT_K;
const int64_t units = int64_t((m + TILE_M - 1) / TILE_M) * ((n + TILE_N - 1) / TILE_N) * splits;
const int64_t most = ctas / CLUSTER_SIZE;
const dim3 grid(static_cast<unsigned>(units < most ? units : most) * CLUSTER_SIZE);
