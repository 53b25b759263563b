${ part(plan.parts.scales_cu) }

__device__ uint32_t hash(int64_t i, uint32_t seed) {
  uint32_t bits = (static_cast<uint32_t>(i) ^ seed << 24) * 2654435761u;
  return (bits ^ bits >> 15) * 2246822519u >> 8;
}

__global__ void fill_scales(uint8_t *scales, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) scales[i] = made_up_scale(hash(i, seed));
}

// The scale of element (row, k): in atoms of 128 rows and four blocks, those along k next to each other.
__device__ float scale_at(const void *scales, int64_t row, int64_t k, int64_t depth) {
  constexpr int BLOCK = ${ plan.scales.block }, ATOM = 4 * BLOCK;
  const int64_t atom = row / 128 * ((depth + ATOM - 1) / ATOM) + k / ATOM;
  const int64_t byte = atom * 512 + row % 32 * 16 + row / 32 % 4 * 4 + k / BLOCK % 4;
  return scale_value(static_cast<const uint8_t *>(scales)[byte]);
}
