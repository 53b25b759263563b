// One kernel, right but for what the macro says: -DFAULT= in_flight_read, call, no_fence or none.
#include "wgmma.h"

#define none 0
#define in_flight_read 1
#define call 2
#define no_fence 3

__device__ __noinline__ void step(float (&d)[32], uint64_t a, uint64_t b)
{
    fence();
    mma(d, a, b);
    commit();
}

extern "C" __global__ void __launch_bounds__(128, 1) variant(float* out, uint64_t a, uint64_t b, int n)
{
    float d[32] = {};
    for (int k = 0; k < n; ++k) {
#if FAULT == call
        step(d, a + k, b + k);
#elif FAULT == no_fence
        mma(d, a + k, b + k);
        commit();
        wait<0>();
        d[3] *= 2;
#else
        fence();
        mma(d, a + k, b + k);
        commit();
        wait<1>();
#endif
#if FAULT == in_flight_read
        out[k] = d[2];
#endif
    }
    wait<0>();
    for (int i = 0; i < 32; ++i) out[i * 128 + threadIdx.x] = d[i];
}
