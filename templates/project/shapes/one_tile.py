# (m, n, k): a full tile and parts of one, over every kind of k.
SHAPES = [
    (m, n, k)
    for m, n in ((BLOCK_M, BLOCK_N), (1, 1), (BLOCK_M - 3, BLOCK_N - 5))
    for k in (1, BLOCK_K, BLOCK_K + 1, 5 * BLOCK_K, 17 * BLOCK_K - 7)
]
TOO_LARGE = [(BLOCK_M + 1, 1, 1), (1, BLOCK_N + 1, 1)]
