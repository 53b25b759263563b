${ part(plan.parts.ctas) }
const int64_t tiles = int64_t((m + TILE_M - 1) / TILE_M) * ((n + TILE_N - 1) / TILE_N), most = ctas / CLUSTER_SIZE;
const dim3 grid(static_cast<unsigned>(tiles < most ? tiles : most) * CLUSTER_SIZE);
