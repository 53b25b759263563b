for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, k0, k);
  load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, k0, k);
  fence_proxy_async();  // wgmma reads through the async proxy what the threads wrote
  __syncthreads();
  multiply(acc, smem.a, smem.b, k0 > 0);
  wgmma_wait<0>();
  __syncthreads();  // every warp has read the k tile; it may be overwritten
}
