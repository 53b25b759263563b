DEVICE uint32_t pack(float low, float high) {
  const ${ plan.output.ctype }2 pair = __floats2${ plan.output.vector }_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}

// Writes this thread's row of a box to swizzled shared memory, 16 bytes at a time.
DEVICE void stage(Output *box, const float (&v)[CHUNK]) {
  const int row = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CHUNK; i += 8)
    reinterpret_cast<uint4 *>(box)[row * 8 + (i / 8 ^ row % 8)] =
        make_uint4(pack(v[i], v[i + 1]), pack(v[i + 2], v[i + 3]), pack(v[i + 4], v[i + 5]), pack(v[i + 6], v[i + 7]));
}
