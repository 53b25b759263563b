load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, 0, k);
load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, 0, k);
fence_proxy_async();  // the tensor core reads through the async proxy what the threads wrote
__syncthreads();
if (threadIdx.x == 0) {
  multiply(tmem, smem.a, smem.b, false);
  tcgen05_commit(smem.acc_full[0]);
}
mbarrier_wait(smem.acc_full[0], phase);
