const Tile tile{static_cast<int>(blockIdx.x) * BLOCK_M, static_cast<int>(blockIdx.y) * BLOCK_N};
${ body }
