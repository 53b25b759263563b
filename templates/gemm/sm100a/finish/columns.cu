// Finishes a thread's row of D: CHUNK columns of it.
DEVICE void finish_row(float (&v)[CHUNK], int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < CHUNK; ++i) {
    if (i % 8 == 0) __syncwarp();  // keeps what is read for one column close to its use: registers are few
    v[i] = finish(v[i], row, column + i, e);
  }
}
