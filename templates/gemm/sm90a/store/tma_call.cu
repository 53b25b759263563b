store(acc, smem.d[${ store_warp }], turn, map_d, d, ldd, ${ row }, tile.column, m, n);
