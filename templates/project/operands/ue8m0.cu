// A scale is a power of two; those made up here are from 1/4 to 2.
__device__ float scale_value(uint8_t code) { return exp2f(code - 127.0f); }
__device__ uint8_t made_up_scale(uint32_t bits) { return 125 + bits % 4; }
