float *const shared_sums = partials + strip * SPLIT_K * STORE_ROWS * BLOCK_N;
share(tmem + slot * BLOCK_N, smem.acc_empty[slot], shared_sums + range.split * STORE_ROWS * BLOCK_N);
if (comes_last(&counters[strip], splits))
  store(shared_sums, splits, smem.d[warp], turn, map_d, d, ldd,
        tile.row + consumer * CONSUMER_M, tile.column, m, n${ ", e" if plan.finish });
