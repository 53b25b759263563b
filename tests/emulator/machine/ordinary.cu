#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
// 1. block reduction with shuffles
__global__ void reduce_sum(const float *x, float *out, int n) {
  __shared__ float part[32];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x == 0) atomicAdd(out, s);
  }
}
// 2. histogram
__global__ void histogram(const unsigned char *x, unsigned *bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
// 3. divergent loop: collatz
__global__ void collatz(const unsigned *x, unsigned *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = x[i]; unsigned s = 0;
  while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; s++; }
  steps[i] = s;
}
// 4. switch
__global__ void operate(const int *op, const int *a, const int *b, int *r, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i], z = 0;
  switch (op[i]) {
    case 0: z = x + y; break;
    case 1: z = x - y; break;
    case 2: z = x * y; break;
    case 3: z = y ? x / y : -7; break;
    case 4: z = y ? x % y : -7; break;
    case 5: z = x << (y & 31); break;
    case 6: z = x >> (y & 31); break;
    case 7: z = __popc(x) + __clz(y) + __ffs(x ^ y); break;
    case 8: z = __mulhi(x, y); break;
    case 9: z = min(x, y) ^ max(x, y); break;
    default: z = __byte_perm(x, y, 0x5140);
  }
  r[i] = z;
}
// 5. local array with dynamic index, insertion sort
__global__ void sort8(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v[8];
  for (int j = 0; j < 8; j++) v[j] = x[i * 8 + j];
  for (int j = 1; j < 8; j++) { int k = j, t = v[j]; while (k > 0 && v[k - 1] > t) { v[k] = v[k - 1]; k--; } v[k] = t; }
  for (int j = 0; j < 8; j++) x[i * 8 + j] = v[j];
}
// 6. noinline calls
struct pair { float a; double b; };
__device__ __noinline__ pair polar(float x, float y, int *count) { atomicAdd(count, 1); return {sqrtf(x * x + y * y), double(x) / (y + 3.0)}; }
__device__ __noinline__ float nested(float x, int *count) { pair p = polar(x, x + 1, count); return p.a + float(p.b); }
__global__ void calls(const float *x, float *y, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float r = nested(x[i], count); if (x[i] > 0.5f) r += nested(-x[i], count); y[i] = r; }
}
// 7. templates and lambdas: transposing tile
template <class T, int TILE, class F> __device__ void tile_map(const T *in, T *out, int rows, int columns, F f) {
  __shared__ T tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = f(in[y * columns + x]);
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void transpose(const double *in, double *out, int rows, int columns, double k) {
  tile_map<double, 16>(in, out, rows, columns, [=](double v) { return v * k + 1; });
}
// 8. half and bf16 arithmetic
__global__ void halves(const __half *a, const __half *b, __half *c, const __nv_bfloat16 *d, __nv_bfloat16 *e, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  c[i] = __hfma(a[i], b[i], __hadd(a[i], __float2half(0.5f)));
  e[i] = __hmul(d[i], __hsub(d[i], __float2bfloat16(1.f)));
}
// 9. spin lock in a warp
__global__ void locked(int *lock, int *value, int n) {
  for (int i = 0; i < n; i++) {
    bool done = false;
    while (!done) if (atomicCAS(lock, 0, 1) == 0) { int v = *(volatile int *)value; *(volatile int *)value = v + 1; __threadfence(); atomicExch(lock, 0); done = true; }
  }
}
// 10. votes, match, scan, constant memory, global variables
__constant__ int weights[4] = {3, -1, 4, 1};
__device__ int total = 5;
__global__ void warps(const int *x, int *out, unsigned *masks) {
  int i = threadIdx.x, v = x[i], s = v;
  for (int o = 1; o < 32; o *= 2) { int t = __shfl_up_sync(~0u, s, o); if (i % 32 >= o) s += t; }
  out[i] = s * weights[i & 3] + total;
  masks[i * 4] = __ballot_sync(~0u, v > 0);
  masks[i * 4 + 1] = __match_any_sync(~0u, v & 3);
  masks[i * 4 + 2] = __reduce_add_sync(~0u, v) + (__all_sync(~0u, v > -100) ? 1 : 0);
  masks[i * 4 + 3] = v > 0 ? __activemask() : 0;
}
// 11. cluster: distributed shared memory
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(4, 1, 1) ring(int *out) {
  __shared__ int mine[64];
  auto cluster = cg::this_cluster();
  mine[threadIdx.x] = cluster.block_rank() * 1000 + threadIdx.x;
  cluster.sync();
  int *next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  out[blockIdx.x * 64 + threadIdx.x] = next[63 - threadIdx.x];
  cluster.sync();
}
// 12. matrix product with float4 and fast maths
__global__ void softmax(const float *x, float *y, int columns) {
  extern __shared__ float row[];
  const float *in = x + blockIdx.x * columns;
  float best = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += 32) { row[i] = in[i]; best = fmaxf(best, row[i]); }
  for (int o = 16; o; o /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, o));
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32) { row[i] = __expf(row[i] - best); sum += row[i]; }
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  for (int i = threadIdx.x; i < columns; i += 32) y[blockIdx.x * columns + i] = __fdividef(row[i], sum);
}
