store(${ acc }, /*% if "release" in plan.parts %*/smem.acc_empty[slot], /*% endif %*/smem.d[${ store_warp }], turn, map_d, d, ldd,
      ${ "scale, " if "factor" in plan.parts }${ row }, tile.column, m, n);
