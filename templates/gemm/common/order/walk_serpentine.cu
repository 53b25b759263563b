const int group = index / (GROUP_M * tiles_n), within = index % (GROUP_M * tiles_n);
const int rows = min(GROUP_M, tiles_m - group * GROUP_M);  // the last group may be shorter
const int across = within / rows, down = within % rows;
// Every other column is walked upwards and every other group backwards, so that each step keeps a panel of A or B.
const int tile_m = group * GROUP_M + (across % 2 ? rows - 1 - down : down);
const int tile_n = group % 2 ? tiles_n - 1 - across : across;
