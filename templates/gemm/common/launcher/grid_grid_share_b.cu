const dim3 grid((m + TILE_M - 1) / TILE_M * CLUSTER_SIZE, (n + TILE_N - 1) / TILE_N);  // whole clusters
