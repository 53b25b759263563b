// Eight elements of a row, of which `left` lie inside the matrix; the others are zero.
DEVICE uint4 load_chunk(const Input *source, int left) {
  union {
    uint4 vector;
    uint16_t element[8];
  } chunk = {};
  if (left >= 8 && reinterpret_cast<uintptr_t>(source) % 16 == 0) {
    chunk.vector = *reinterpret_cast<const uint4 *>(source);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < left) chunk.element[i] = reinterpret_cast<const uint16_t *>(source)[i];
  }
  return chunk.vector;
}

// Copies ROWS rows of one k tile, 16 bytes per thread and turn. Shared rows are 128 bytes, and the 16-byte chunks of
// row r are stored at their index ^ (r % 8): the 128-byte swizzle that ${ plan.arch.mma } undoes.
template <int ROWS>
DEVICE void load_k_tile(Input *tile, const Input *matrix, int64_t stride, int row, int rows, int k0, int k) {
  constexpr int CHUNKS = BLOCK_K / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * CHUNKS; i += NUM_THREADS) {
    const int r = i / CHUNKS, chunk = i % CHUNKS;
    const int left = row + r < rows ? k - k0 - chunk * 8 : 0;
    const Input *source = matrix + (row + r) * stride + k0 + chunk * 8;
    reinterpret_cast<uint4 *>(tile)[r * CHUNKS + (chunk ^ r % 8)] = load_chunk(source, left);
  }
}
