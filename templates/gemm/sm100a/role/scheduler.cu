Cursor<CLC_SLOTS> clc;
do {  // ask for the next tile while this one is computed; once there was none, nobody may ask again
  mbarrier_wait(smem.clc_empty[clc.slot], clc.phase ^ 1);  // everybody has read the answer before
  ${ part(plan.parts.request, depth=1) }
} while (next_tile(smem, clc) >= 0);
