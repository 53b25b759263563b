// Device code of the benchmark's result check; compiled at run time, so it includes nothing.

enum { FP32 = 0, FP16 = 1, BF16 = 2 };

__device__ float load(const void *p, long long i, int dtype)
{
    if (dtype == FP32) return ((const float *)p)[i];
    const unsigned short bits = ((const unsigned short *)p)[i];
    float value;
    if (dtype == FP16) {
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    return __uint_as_float((unsigned)bits << 16);  // bf16 is the upper half of an fp32
}

// sums[0] += sum (d - reference)^2, sums[1] += sum reference^2 over an m x n matrix. A NaN anywhere in d makes
// sums[0] a NaN, so an element that was never written shows.
extern "C" __global__ void squared_error(const void *d, long long ldd, int dtype, const float *reference,
                                         long long m, long long n, double *sums)
{
    double difference = 0, norm = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < m * n; i += step) {
        const long long row = i / n, col = i % n;
        const double r = reference[i], e = (double)load(d, row * ldd + col, dtype) - r;
        difference += e * e;
        norm += r * r;
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        difference += __shfl_down_sync(0xffffffffu, difference, lane);
        norm += __shfl_down_sync(0xffffffffu, norm, lane);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], difference);
        atomicAdd(&sums[1], norm);
    }
}

// d[m,n] = sum_k a[m,k] * b[n,k] in fp32, one thread per element over 16 x 16 tiles: the reference where there
// is no cuBLAS. Launch with blocks of 16 x 16 and a grid of (ceil(n / 16), ceil(m / 16)) at most; it strides.
extern "C" __global__ void plain_gemm(const void *a, long long lda, const void *b, long long ldb, int dtype,
                                      float *d, long long m, long long n, long long k)
{
    __shared__ float tile_a[16][17], tile_b[16][17];  // a column more than needed keeps the banks apart
    const int x = threadIdx.x, y = threadIdx.y;
    for (long long row0 = blockIdx.y * 16ll; row0 < m; row0 += gridDim.y * 16ll) {
        for (long long col0 = blockIdx.x * 16ll; col0 < n; col0 += gridDim.x * 16ll) {
            float sum = 0;
            for (long long k0 = 0; k0 < k; k0 += 16) {
                const bool in_k = k0 + x < k;
                tile_a[y][x] = in_k && row0 + y < m ? load(a, (row0 + y) * lda + k0 + x, dtype) : 0.0f;
                tile_b[y][x] = in_k && col0 + y < n ? load(b, (col0 + y) * ldb + k0 + x, dtype) : 0.0f;
                __syncthreads();
                for (int i = 0; i < 16; ++i) sum = fmaf(tile_a[y][i], tile_b[x][i], sum);
                __syncthreads();
            }
            if (row0 + y < m && col0 + x < n) d[(row0 + y) * n + col0 + x] = sum;
        }
    }
}
