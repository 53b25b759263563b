// The same by a whole warp: one lane reads for all.
DEVICE int next_tile_of_warp(SharedStorage &smem, Cursor<CLC_SLOTS> &clc) {
  int index = 0;
  if (threadIdx.x % 32 == 0)
    index = next_tile(smem, clc);
  else
    clc.advance();
  return __shfl_sync(0xffffffff, index, 0);
}
