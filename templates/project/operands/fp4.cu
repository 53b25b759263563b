${ part("project/operands/scales.cu") }

// Any byte is two elements.
__global__ void fill(uint8_t *matrix, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) matrix[i] = static_cast<uint8_t>(hash(i, seed));
}

// e2m1: a sign, then two bits of exponent and one of fraction. The lower k is in the low half of a byte.
__device__ float e2m1(const void *matrix, int64_t element) {
  const int code = static_cast<const uint8_t *>(matrix)[element / 2] >> element % 2 * 4 & 15, exponent = code >> 1 & 3;
  const float fraction = (code & 1) * 0.5f;
  const float magnitude = exponent == 0 ? fraction : (1 + fraction) * (1 << (exponent - 1));
  return code & 8 ? -magnitude : magnitude;
}

__device__ float value_a(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return e2m1(g.a, row * g.lda + k) * scale_at(g.sfa, row, k, g.k);
}
__device__ float value_b(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return e2m1(g.b, row * g.ldb + k) * scale_at(g.sfb, row, k, g.k);
}
