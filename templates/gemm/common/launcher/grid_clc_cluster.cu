const int64_t tiles = int64_t((m + TILE_M - 1) / TILE_M) * ((n + TILE_N - 1) / TILE_N);
if (tiles > INT32_MAX / CLUSTER_SIZE) return cudaErrorInvalidValue;
const dim3 grid(static_cast<unsigned>(tiles) * CLUSTER_SIZE);  // running clusters take the tiles of those that wait
