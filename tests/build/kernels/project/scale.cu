// Shaped like a generated project: tensor map by value, bf16, one C entry point, host part hidden from NVRTC.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifndef __CUDACC_RTC__
#include "scale.h"
#endif

namespace {

static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 128 && sizeof(uint64_t) == 8, "CUDA 13");

__global__ void __launch_bounds__(128) scale_kernel(__nv_bfloat16* values, int count,
                                                    const __grid_constant__ CUtensorMap map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(&map)) : "memory");
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) values[i] = __float2bfloat16(2.0f * __bfloat162float(values[i]));
}

}  // namespace

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t scale(void* values, int count, cudaStream_t stream)
{
    if (values == nullptr) return cudaErrorInvalidValue;
    const CUtensorMap map{};
    scale_kernel<<<(count + 127) / 128, 128, 0, stream>>>(static_cast<__nv_bfloat16*>(values), count, map);
    return cudaGetLastError();
}
#endif
