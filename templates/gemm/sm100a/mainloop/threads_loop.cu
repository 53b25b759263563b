for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
  load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, k0, k);
  load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, k0, k);
  fence_proxy_async();  // the tensor core reads through the async proxy what the threads wrote
  __syncthreads();
  if (threadIdx.x == 0) {
    multiply(tmem, smem.a, smem.b, k0 > 0);
    tcgen05_commit(smem.acc_full[0]);
  }
  mbarrier_wait(smem.acc_full[0], phase);  // the k tile has been multiplied; it may be overwritten
  phase ^= 1;
}
