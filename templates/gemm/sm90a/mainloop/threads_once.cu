load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, 0, k);
load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, 0, k);
fence_proxy_async();  // wgmma reads through the async proxy what the threads wrote
__syncthreads();
multiply(acc, smem.a, smem.b, false);
wgmma_wait<0>();
