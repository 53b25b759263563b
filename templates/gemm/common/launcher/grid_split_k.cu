${ part(plan.parts.ctas) }
const int64_t k_tiles = (int64_t(k) + BLOCK_K - 1) / BLOCK_K, splits = k_tiles < SPLIT_K ? k_tiles : SPLIT_K;
const int64_t units = int64_t((m + BLOCK_M - 1) / BLOCK_M) * ((n + BLOCK_N - 1) / BLOCK_N) * splits;
const dim3 grid(static_cast<unsigned>(units < ctas ? units : ctas));
