store(${ acc }, /*% if "release" in plan.parts %*/smem.acc_empty[slot], /*% endif %*/d, ldd, ${ "scale, " if "factor" in plan.parts }${ row }, tile.column, m, n);
