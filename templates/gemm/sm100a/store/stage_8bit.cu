// Four elements rounded to D's type, saturating: the first in the lowest byte.
DEVICE uint32_t pack(const float *v) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2({v[0], v[1]}, __NV_SATFINITE, __NV_${ plan.output.name | upper });
  const uint32_t high = __nv_cvt_float2_to_fp8x2({v[2], v[3]}, __NV_SATFINITE, __NV_${ plan.output.name | upper });
  return low | high << 16;
}

// Writes CHUNK columns, from `column` on, of this thread's row of a box to swizzled shared memory, 16 bytes at a time.
DEVICE void stage(Output *box, const float (&v)[CHUNK], int column) {
  const int row = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CHUNK; i += 16)
    reinterpret_cast<uint4 *>(box)[row * 8 + ((column + i) / 16 ^ row % 8)] =
        make_uint4(pack(v + i), pack(v + i + 4), pack(v + i + 8), pack(v + i + 12));
}
