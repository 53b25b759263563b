store(acc, d, ldd, ${ row }, tile.column${ " / 2" if plan.pairs }, m, ${ "e.columns" if plan.pairs else "n" }${ ", e" if plan.finish });
