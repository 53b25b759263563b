// A register split; with -DNO_BOUNDS ptxas does not know the block size and ignores it.
#ifdef NO_BOUNDS
#define BOUNDS
#else
#define BOUNDS __launch_bounds__(384, 1)
#endif
extern "C" __global__ void BOUNDS split(float* p)
{
    __shared__ float s[64];
    if (threadIdx.x < 128)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    s[threadIdx.x % 64] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
