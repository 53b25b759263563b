// gemm_step3: D[m,n] = sum over k of A[m,k] * B[n,k], for H100/H200 (sm_90a).
// bf16 in, fp32 accumulate, bf16 out; A, B and D are row-major.
//
// One CTA per tile of D, so M and N may be anything. Rows and columns beyond the edge are read as zero and never
// stored.
//
// Shared memory, 40,960 bytes per CTA:
//         0  a         8192 B  k tiles of A
//      8192  b        32768 B  k tiles of B
// Warps:
//   0-3  warpgroup: loads, multiplies and stores in turn
// Build: nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -c gemm_step3.cu

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifndef __CUDACC_RTC__
#include "gemm_step3.h"
#endif

#define DEVICE __device__ __forceinline__

namespace gemm_step3 {
namespace {

using Input = __nv_bfloat16;
using Output = __nv_bfloat16;

constexpr int BLOCK_M = 64;             // rows of D per CTA
constexpr int BLOCK_N = 256;            // columns of D per CTA; one wgmma spans them
constexpr int BLOCK_K = 64;             // depth of a k tile: one 128-byte swizzled row
constexpr int M_BLOCKS = BLOCK_M / 64;  // wgmma works on 64 rows

constexpr int CTAS_PER_SM = 1;        // resident together: no fewer, no more
constexpr int SMEM_BYTES = 116736;    // asked for: more than is used, so that no further CTA fits
constexpr int SMEM_ALIGNMENT = 1024;  // the 128-byte swizzle starts anew every 1024 bytes
constexpr int NUM_THREADS = 128;      // one warpgroup

struct SharedStorage {
  Input a[BLOCK_M * BLOCK_K];  // k tiles of A
  Input b[BLOCK_N * BLOCK_K];  // k tiles of B
};
static_assert(sizeof(SharedStorage) == 40960 && SMEM_BYTES >= 40960, "the map above");

DEVICE uint32_t smem_address(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }
// Makes this thread's writes to shared memory visible to the TMA engine and the tensor core.
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Describes an operand in 128-byte swizzled rows. Addresses and strides are in units of 16 bytes.
DEVICE uint64_t wgmma_descriptor(const void *tile) {
  constexpr uint64_t SWIZZLE_128B = 1ull << 62, ROW_GROUP_STRIDE = 1024 >> 4;  // from eight rows to the next eight
  return SWIZZLE_128B | ROW_GROUP_STRIDE << 32 | smem_address(tile) >> 4;
}
// Orders this warpgroup's register accesses before the wgmmas that follow.
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N wgmma groups of this warpgroup are in flight.
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// D[64, BLOCK_N] (+)= A[64, 16] * B[BLOCK_N, 16]; `accumulate` = 0 overwrites D.
DEVICE void wgmma(float (&d)[BLOCK_N / 2], uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
               "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
               "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
               "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
               "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
               "%128, %129, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
        "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
        "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(accumulate));
}

struct Tile { int row, column; };  // of its first element in D
// D of one warpgroup. Of each 64 rows, warp w holds 16w to 16w+15; for every 8 columns lane l holds columns 2*(l%4) and
// 2*(l%4)+1 of row l/4, then of row l/4+8.
using Accumulators = float[M_BLOCKS][BLOCK_N / 2];
// Tells the compiler that the accumulators change here, so that no read of them moves above a wait.
DEVICE void pin(Accumulators &acc) {
#pragma unroll
  for (int i = 0; i < M_BLOCKS * BLOCK_N / 2; ++i) asm volatile("" : "+f"(acc[0][i])::"memory");
}

// Eight elements of a row, of which `left` lie inside the matrix; the others are zero.
DEVICE uint4 load_chunk(const Input *source, int left) {
  union {
    uint4 vector;
    uint16_t element[8];
  } chunk = {};
  if (left >= 8 && reinterpret_cast<uintptr_t>(source) % 16 == 0) {
    chunk.vector = *reinterpret_cast<const uint4 *>(source);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < left) chunk.element[i] = reinterpret_cast<const uint16_t *>(source)[i];
  }
  return chunk.vector;
}

// Copies ROWS rows of one k tile, 16 bytes per thread and turn. Shared rows are 128 bytes, and the 16-byte chunks of
// row r are stored at their index ^ (r % 8): the 128-byte swizzle that wgmma undoes.
template <int ROWS>
DEVICE void load_k_tile(Input *tile, const Input *matrix, int64_t stride, int row, int rows, int k0, int k) {
  constexpr int CHUNKS = BLOCK_K / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * CHUNKS; i += NUM_THREADS) {
    const int r = i / CHUNKS, chunk = i % CHUNKS;
    const int left = row + r < rows ? k - k0 - chunk * 8 : 0;
    const Input *source = matrix + (row + r) * stride + k0 + chunk * 8;
    reinterpret_cast<uint4 *>(tile)[r * CHUNKS + (chunk ^ r % 8)] = load_chunk(source, left);
  }
}

// One k tile: 16 columns of A and B at a time, for each 64 rows of the warpgroup. Stepping 16 columns inside a swizzled
// row is a plain addition of 32 bytes, because the swizzle acts on the final address.
DEVICE void multiply(Accumulators &acc, const Input *a, const Input *b, bool accumulate) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += 16) {
#pragma unroll
    for (int block = 0; block < M_BLOCKS; ++block)
      wgmma(acc[block], wgmma_descriptor(a + block * 64 * BLOCK_K + k), wgmma_descriptor(b + k), accumulate || k > 0);
  }
  wgmma_commit();
}

// Writes this warpgroup's rows of D from registers; what lies outside the matrix is left out.
DEVICE void store(const Accumulators &acc, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int block = 0; block < M_BLOCKS; ++block) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; ++i) {
      const int r = row + block * 64 + warp * 16 + lane / 4 + (i / 2) % 2 * 8;
      const int c = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (r < m && c < n) d[r * ldd + c] = Output(acc[block][i]);
    }
  }
}

static __global__ void __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(const Input *__restrict__ a, int64_t lda, const Input *__restrict__ b, int64_t ldb, Output *__restrict__ d,
     int64_t ldd, int m, int n, int k) {
  extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
  SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
  if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage

  const Tile tile{static_cast<int>(blockIdx.x) * BLOCK_M, static_cast<int>(blockIdx.y) * BLOCK_N};
  Accumulators acc;
  for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
    load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, k0, k);
    load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, k0, k);
    fence_proxy_async();  // wgmma reads through the async proxy what the threads wrote
    __syncthreads();
    multiply(acc, smem.a, smem.b, k0 > 0);
    wgmma_wait<0>();
    __syncthreads();  // every warp has read the k tile; it may be overwritten
  }
  pin(acc);
  store(acc, d, ldd, tile.row, tile.column, m, n);
}

#ifndef __CUDACC_RTC__  // the host half; NVRTC compiles only the kernel
static cudaError_t launch(const gemm_step3_args &args, cudaStream_t stream) {
  constexpr int64_t MAX_EXTENT = 0x7fff0000;  // coordinates are int, and the last tile may reach past the edge
  if (!args.a || !args.b || !args.d || args.m < 1 || args.n < 1 || args.k < 1) return cudaErrorInvalidValue;
  if (args.m > MAX_EXTENT || args.n > MAX_EXTENT || args.k > MAX_EXTENT) return cudaErrorInvalidValue;
  if (args.lda < args.k || args.ldb < args.k || args.ldd < args.n) return cudaErrorInvalidValue;
  int device = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (!error) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (!error) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (!error && (major != 9 || minor != 0)) error = cudaErrorNoKernelImageForDevice;
  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
  const Input *a = static_cast<const Input *>(args.a);
  int64_t lda = args.lda;
  const Input *b = static_cast<const Input *>(args.b);
  int64_t ldb = args.ldb;
  Output *d = static_cast<Output *>(args.d);
  int64_t ldd = args.ldd;
  const dim3 grid((m + BLOCK_M - 1) / BLOCK_M, (n + BLOCK_N - 1) / BLOCK_N);
  if (!error) error = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  if (error) return error;
  void *parameters[] = {&a, &lda, &b, &ldb, &d, &ldd, &m, &n, &k};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
#endif

}  // namespace
}  // namespace gemm_step3

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t gemm_step3_launch(
    const struct gemm_step3_args *args, cudaStream_t stream) {
  return args == nullptr ? cudaErrorInvalidValue : gemm_step3::launch(*args, stream);
}
#endif
