# (m, n, k): a full tile, parts of one, and every tail.
SHAPES = [
    (m, n, k) for m in (BLOCK_M, 1, BLOCK_M - 3) for n in (BLOCK_N, 1, BLOCK_N - 5) for k in (BLOCK_K, 1, BLOCK_K - 7)
]
TOO_LARGE = [(BLOCK_M + 1, 1, 1), (1, BLOCK_N + 1, 1), (1, 1, BLOCK_K + 1)]
