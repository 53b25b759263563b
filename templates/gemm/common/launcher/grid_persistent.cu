${ part(plan.parts.ctas) }
const int64_t tiles = int64_t((m + BLOCK_M - 1) / BLOCK_M) * ((n + BLOCK_N - 1) / BLOCK_N);
const dim3 grid(static_cast<unsigned>(tiles < ctas ? tiles : ctas));
