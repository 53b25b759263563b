store(${ acc }, /*% if "release" in plan.parts %*/smem.acc_empty[slot], /*% endif %*/smem.d[${ store_warp }], turn, map_d, d, ldd,
      ${ row }, tile.column${ " / 2" if plan.pairs }, m, ${ "e.columns" if plan.pairs else "n" }${ ", e" if plan.finish });
