store(${ acc }, /*% if "release" in plan.parts %*/smem.acc_empty[slot], /*% endif %*/d, ldd, ${ row }, tile.column, m, n);
