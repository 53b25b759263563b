${ part("project/operands/normal.cu") }

template <class Element> __global__ void fill(Element *matrix, int64_t count, uint32_t seed) {
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += stride) matrix[i] = Element(normal(i, seed));
}

__device__ float value_a(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return float(static_cast<const InputA *>(g.a)[${ plan.index("a") }]);
}
__device__ float value_b(const ${ plan.name }_args &g, int64_t row, int64_t k) {
  return float(static_cast<const InputB *>(g.b)[${ plan.index("b") }]);
}
