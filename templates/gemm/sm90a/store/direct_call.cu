store(acc, d, ldd, ${ row }, tile.column, m, n);
