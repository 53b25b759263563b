store(acc, smem.d[${ store_warp }], turn, map_d, d, ldd, ${ row }, tile.column${ " / 2" if plan.pairs }, m, ${ "e.columns" if plan.pairs else "n" }${ ", e" if plan.finish });
