// Reads and finishes a thread's row of D: CHUNK columns of it, out of twice as many of the accumulator at `acc`.
DEVICE void load_pairs(float (&v)[CHUNK], uint32_t acc, int row, int column, const Epilogue &e) {
#pragma unroll
  for (int first = 0; first < CHUNK; first += CHUNK / 2) {
    float pairs[CHUNK];
    tcgen05_load(pairs, acc + 2 * first);
    tcgen05_wait_load();
#pragma unroll
    for (int i = 0; i < CHUNK / 2; ++i) {
      if (i % 8 == 0) __syncwarp();  // keeps what is read for one column close to its use: registers are few
      v[first + i] = finish(pairs[2 * i], pairs[2 * i + 1], row, column + first + i, e);
    }
  }
}
