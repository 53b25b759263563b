// This warp's 32 lanes of the accumulator at `acc` to `partial`, column after column, for whoever comes last.
DEVICE void share(uint32_t acc, uint64_t &acc_empty, float *partial) {
  const int first_lane = threadIdx.x / 32 % 4 * STORE_ROWS;
  for (int c = 0; c < BLOCK_N; c += CHUNK) {
    float v[CHUNK];
    tcgen05_load(v, acc + (first_lane << 16) + c);
    tcgen05_wait_load();
    if (c + CHUNK == BLOCK_N) release(acc_empty);  // all read: the next tile may be multiplied into it
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) partial[(c + i) * STORE_ROWS + threadIdx.x % 32] = v[i];
  }
}

// True in the warp that is the last of `splits` to get here: it sees what the others have shared. It leaves the counter
// at zero, as it was found, for the next launch.
DEVICE bool comes_last(uint32_t *counter, int splits) {
  uint32_t before = 0;
  __syncwarp();  // every lane has shared
  if (threadIdx.x % 32 == 0) {
    __threadfence();  // what was shared, before the count
    before = atomicAdd(counter, 1);
    if (before + 1 == splits) *counter = 0;
    __threadfence();  // the count, before what others have shared
  }
  __syncwarp();
  return __shfl_sync(0xffffffff, before, 0) + 1 == splits;
}

// CHUNK columns from `c` on of this lane's row, summed over the splits in their order, whichever came last.
DEVICE void sum(float (&v)[CHUNK], const float *partials, int splits, int c) {
#pragma unroll
  for (int i = 0; i < CHUNK; ++i) v[i] = partials[(c + i) * STORE_ROWS + threadIdx.x % 32];
  for (int split = 1; split < splits; ++split) {
    partials += STORE_ROWS * BLOCK_N;
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) v[i] += partials[(c + i) * STORE_ROWS + threadIdx.x % 32];
  }
}
