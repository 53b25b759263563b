// Plain GEMM projects for the tests on a card: right, wrong, out of bounds, endless, refusing.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

struct naive_args { const void *a, *b; void *d; int64_t m, n, k, lda, ldb, ldd; };

__global__ void gemm(naive_args args, int64_t k)
{
    const int64_t row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= args.m || col >= args.n) return;
    const __nv_bfloat16 *a = (const __nv_bfloat16 *)args.a, *b = (const __nv_bfloat16 *)args.b;
    float sum = 0;
    for (int64_t i = 0; i < k; ++i)
        sum += __bfloat162float(a[row * args.lda + i]) * __bfloat162float(b[col * args.ldb + i]);
    ((__nv_bfloat16 *)args.d)[row * args.ldd + col] = __float2bfloat16(sum);
}

__global__ void write_nowhere() { *(volatile int *)16 = 1; }

__global__ void endless(volatile int *never) { while (*never != 12345) {} }

static cudaError_t launch(const naive_args *args, int64_t k, cudaStream_t stream)
{
    const dim3 grid((unsigned)((args->n + 15) / 16), (unsigned)((args->m + 15) / 16));
    gemm<<<grid, dim3(16, 16), 0, stream>>>(*args, k);
    return cudaGetLastError();
}

extern "C" cudaError_t right_launch(const naive_args *args, cudaStream_t s) { return launch(args, args->k, s); }
extern "C" cudaError_t wrong_launch(const naive_args *args, cudaStream_t s) { return launch(args, args->k - 1, s); }
extern "C" cudaError_t refusing_launch(const naive_args *, cudaStream_t) { return cudaErrorInvalidValue; }

extern "C" cudaError_t stray_launch(const naive_args *, cudaStream_t stream)
{
    write_nowhere<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

extern "C" cudaError_t endless_launch(const naive_args *args, cudaStream_t stream)
{
    endless<<<1, 1, 0, stream>>>((volatile int *)args->d);
    return cudaGetLastError();
}
