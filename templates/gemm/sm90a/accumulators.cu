// D of one warpgroup. Of each 64 rows, warp w holds 16w to 16w+15; for every 8 columns lane l holds columns 2*(l%4) and
// 2*(l%4)+1 of row l/4, then of row l/4+8.
using Accumulators = float[M_BLOCKS][BLOCK_N / 2];
// Tells the compiler that the accumulators change here, so that no read of them moves above a wait.
DEVICE void pin(Accumulators &acc) {
#pragma unroll
  for (int i = 0; i < M_BLOCKS * BLOCK_N / 2; ++i) asm volatile("" : "+f"(acc[0][i])::"memory");
}
