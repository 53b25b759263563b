// What follows the accumulator in most kernels: 128 threads take a 128 x 64 fp32 tile row by row, scale, add a bias,
// relu, round to bf16 pairs into swizzled staging, and write whole rows out.
#include <cstdint>
#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(128)
epilogue(const float* sums, const float* bias, __nv_bfloat16* d, float alpha, int tiles)
{
    __shared__ alignas(1024) uint4 staging[128 * 8];
    int const thread = threadIdx.x;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 const* row = reinterpret_cast<float4 const*>(sums + (size_t(tile) * 128 + thread) * 64);
#pragma unroll
        for (int chunk = 0; chunk < 8; ++chunk) {
            float4 const low = row[2 * chunk], high = row[2 * chunk + 1];
            float value[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            uint32_t packed[4];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                value[i] = fmaxf(fmaf(alpha, value[i], bias[8 * chunk + i]), 0.0f);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                __nv_bfloat162 const pair = __floats2bfloat162_rn(value[2 * i], value[2 * i + 1]);
                packed[i] = *reinterpret_cast<uint32_t const*>(&pair);
            }
            staging[thread * 8 + (chunk ^ (thread & 7))] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
        }
        __syncthreads();
        uint4* out = reinterpret_cast<uint4*>(d + size_t(tile) * 128 * 64);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            int const piece = thread + 128 * i, line = piece / 8, chunk = piece % 8;
            out[piece] = staging[line * 8 + (chunk ^ (line & 7))];
        }
        __syncthreads();
    }
}
