# (m, n, k)
SHAPES = [
    (1, 1, 1),
    (BLOCK_M, BLOCK_N, BLOCK_K),  # one tile, one k tile
    (TILE_M, TILE_N, BLOCK_K),
    (7, BLOCK_N, BLOCK_K),  # below a tile
    (BLOCK_M, 7, 3 * BLOCK_K),
    (TILE_M + 1, TILE_N - 1, BLOCK_K + 1),  # tails everywhere
    (3 * TILE_M - 5, 5 * BLOCK_N + 24, 200),  # odd grids
    (5 * BLOCK_M, 3 * TILE_N, 129),
    (2 * TILE_M - 3, 1, 1000),
    (1, 2 * TILE_N + 13, 1000),
    (20 * BLOCK_M + 1, 7 * BLOCK_N + 9, 2 * BLOCK_K + 8),  # more tiles than CTAs
    (BLOCK_M, 139 * BLOCK_N - 3, BLOCK_K),
    (333, 512, 4321),
    # k tiles: one short of the ring, the ring, one over, two rings and one, and a tail
    *((TILE_M, TILE_N, tiles * BLOCK_K) for tiles in (max(1, STAGES - 1), STAGES, STAGES + 1, 2 * STAGES + 1)),
    (TILE_M + 8, TILE_N + 8, (3 * STAGES + 1) * BLOCK_K - 5),
]
TOO_LARGE = []
