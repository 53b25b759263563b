const int group = index / (GROUP_M * tiles_n), within = index % (GROUP_M * tiles_n);
const int rows = min(GROUP_M, tiles_m - group * GROUP_M);  // the last group may be shorter
const int tile_m = group * GROUP_M + within % rows, tile_n = within / rows;
