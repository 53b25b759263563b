const dim3 grid((m + TILE_M - 1) / TILE_M, (n + TILE_N - 1) / TILE_N * CLUSTER_SIZE);  // whole clusters
