// 96 live values under a bound of 32 registers a thread.
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* p, int n)
{
    float a[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) a[i] = p[i * 1024 + threadIdx.x];
    for (int k = 0; k < n; ++k) {
#pragma unroll
        for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 7) % 96] + p[k];
    }
#pragma unroll
    for (int i = 0; i < 96; ++i) p[i * 1024 + threadIdx.x] = a[i];
}
