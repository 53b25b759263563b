tcgen05_fence_before();
__syncthreads();  // every warp has read the accumulator; the next tile may overwrite it
tcgen05_fence_after();
