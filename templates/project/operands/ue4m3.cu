// A scale is an e4m3 without its sign; those made up here are from 1/2 to almost 2.
__device__ float scale_value(uint8_t code) {
  __nv_fp8_e4m3 number;
  number.__x = code;
  return float(number);
}
__device__ uint8_t made_up_scale(uint32_t bits) { return 0x30 + bits % 16; }
