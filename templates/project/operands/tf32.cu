${ part("project/operands/normal.cu") }

// What the tensor core reads of a number: 10 bits of its fraction.
__device__ float tf32(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

template <class Element> __global__ void fill(Element *matrix, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) matrix[i] = tf32(normal(i, seed));
}

__device__ float value_a(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return float(static_cast<const InputA *>(g.a)[${ plan.index("a") }]);
}
__device__ float value_b(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return float(static_cast<const InputB *>(g.b)[${ plan.index("b") }]);
}
