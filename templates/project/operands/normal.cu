// About normal(0, 1): the sum of four hashed uniform numbers.
__device__ float normal(int64_t i, uint32_t seed) {
  uint32_t state = static_cast<uint32_t>(i) * 2654435761u ^ static_cast<uint32_t>(i >> 32) ^ seed;
  float sum = 0;
  for (int draw = 0; draw < 4; ++draw) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    state = state * 1664525u + 1013904223u;
    sum += static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
  }
  return sum * 1.7320508f;
}
