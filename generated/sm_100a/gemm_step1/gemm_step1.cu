// gemm_step1: D[m,n] = sum over k of A[m,k] * B[n,k], for B200 (sm_100a).
// bf16 in, fp32 accumulate, bf16 out; A, B and D are row-major.
//
// One tile of D by one warpgroup: the threads copy A and B into swizzled shared memory, one of them issues four MMAs
// whose accumulator lies in tensor memory, and every thread stores the row it may read. Everything a tensor-core
// kernel needs, and nothing else.
//
// Shared memory, 32,784 bytes per CTA:
//         0  a          16384 B  k tiles of A
//     16384  b          16384 B  k tiles of B
//     32768  acc_full       8 B  accumulator is complete
//     32776  tmem           8 B  where tensor memory was allocated; [1] pads
// Barriers:
//   acc_full[1]: 1 arrival (warpgroup: 1 commit); the warpgroup waits, first for parity 0
// Tensor memory, 128 of 512 columns:
//   0-127  acc: 128 x 128 fp32
// Warps:
//   0-3  warpgroup: loads, lets one thread issue the MMAs, and stores
// Build: nvcc -std=c++17 -O3 -gencode arch=compute_100a,code=sm_100a -c gemm_step1.cu

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifndef __CUDACC_RTC__
#include "gemm_step1.h"
#endif

#define DEVICE __device__ __forceinline__

namespace gemm_step1 {
namespace {

using Input = __nv_bfloat16;
using Output = __nv_bfloat16;

constexpr int BLOCK_M = 128;  // rows of D per CTA: the lanes of tensor memory
constexpr int BLOCK_N = 128;  // columns of D per CTA; one MMA spans them
constexpr int BLOCK_K = 64;   // depth of a k tile: one 128-byte swizzled row

constexpr int MMA_M = BLOCK_M;                  // rows that one MMA computes
constexpr int MMA_K = 32 / sizeof(Input);       // depth of one MMA: 32 bytes of each row
constexpr int INPUT_FORMAT = 1 << 7 | 1 << 10;  // A and B are bf16
constexpr int INSTRUCTION = 1 << 4 | INPUT_FORMAT | BLOCK_N / 8 << 17 | MMA_M / 16 << 24;  // fp32 sums
constexpr int TMEM_COLUMNS = 128;               // allocated: a power of two

constexpr int CTAS_PER_SM = 1;        // resident together: no fewer, no more
constexpr int SMEM_BYTES = 116736;    // asked for: more than is used, so that no further CTA fits
constexpr int SMEM_ALIGNMENT = 1024;  // the 128-byte swizzle starts anew every 1024 bytes
constexpr int NUM_THREADS = 128;      // one warpgroup
constexpr int CHUNK = 32;             // columns of an accumulator in registers

struct SharedStorage {
  Input a[BLOCK_M * BLOCK_K];  // k tiles of A
  Input b[BLOCK_N * BLOCK_K];  // k tiles of B
  uint64_t acc_full[1];        // accumulator is complete
  uint32_t tmem[2];            // where tensor memory was allocated; [1] pads
};
static_assert(sizeof(SharedStorage) == 32784 && SMEM_BYTES >= 32784, "the map above");

DEVICE uint32_t smem_address(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }
// Makes this thread's writes to shared memory visible to the TMA engine and the tensor core.
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void mbarrier_init(uint64_t &bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem_address(&bar)), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the TMA engine and to the other CTAs of a cluster.
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void mbarrier_wait(uint64_t &bar, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\n"
               "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra WAIT;\n}" :: "r"(smem_address(&bar)), "r"(parity) : "memory");
}

// Allocates tensor memory, by one whole warp; its address lands in `where`.
DEVICE void tcgen05_alloc(uint32_t &where, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
               :: "r"(smem_address(&where)), "r"(columns) : "memory");
}
DEVICE void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}
DEVICE void tcgen05_dealloc(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(address), "r"(columns) : "memory");
}
// Orders this thread's accesses to tensor memory before the barrier that follows, for those who wait there ...
DEVICE void tcgen05_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
// Orders this thread's accesses to tensor memory after the barrier that it has passed.
DEVICE void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
// Describes an operand in 128-byte swizzled rows. Addresses and strides are in units of 16 bytes; of an address only
// its place in the CTA counts.
DEVICE uint64_t tcgen05_descriptor(const void *tile) {
  constexpr uint64_t SWIZZLE_128B = 2ull << 61, VERSION = 1ull << 46;
  constexpr uint64_t ROW_GROUP_STRIDE = 1024 >> 4;  // from eight rows to the next eight
  return SWIZZLE_128B | VERSION | ROW_GROUP_STRIDE << 32 | (smem_address(tile) & 0x3ffff) >> 4;
}
// D[MMA_M, BLOCK_N] (+)= A[MMA_M, MMA_K] * B[BLOCK_N, MMA_K]; `accumulate` = 0 overwrites D.
DEVICE void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, int accumulate) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
               "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
               :: "r"(d), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(accumulate) : "memory");
}
// Arrives on `bar` once every MMA that this thread has issued so far is complete.
DEVICE void tcgen05_commit(uint64_t &bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :: "r"(smem_address(&bar)) : "memory");
}
// CHUNK columns of the 32 lanes from `address` on, a lane per thread; `v` may be read after tcgen05_wait_load.
DEVICE void tcgen05_load(float (&v)[CHUNK], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "[%32];"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]),
        "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]),
        "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]), "=f"(v[20]), "=f"(v[21]), "=f"(v[22]), "=f"(v[23]),
        "=f"(v[24]), "=f"(v[25]), "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]), "=f"(v[30]), "=f"(v[31])
      : "r"(address));
}
DEVICE void tcgen05_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

struct Tile { int row, column; };  // of its first element in D
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
// row r are stored at their index ^ (r % 8): the 128-byte swizzle that tcgen05.mma undoes.
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

// One k tile into the accumulator at `acc`: MMA_K columns of A and B at a time, issued by one thread. Stepping along K
// inside a swizzled row is a plain addition of 32 bytes, because the swizzle acts on the final address.
DEVICE void multiply(uint32_t acc, const Input *a, const Input *b, bool accumulate) {
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += MMA_K)
    tcgen05_mma(acc, tcgen05_descriptor(a + k), tcgen05_descriptor(b + k), accumulate || k > 0);
}

// Writes D from this warp's 32 lanes of the accumulator at `acc`, a row per thread; what lies outside the matrix
// is left out.
DEVICE void store(uint32_t acc, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first_lane = threadIdx.x / 32 % 4 * 32, r = row + first_lane + threadIdx.x % 32;
  for (int c = 0; c < BLOCK_N; c += CHUNK) {
    float v[CHUNK];
    tcgen05_load(v, acc + (first_lane << 16) + c);
    tcgen05_wait_load();
#pragma unroll
    for (int i = 0; i < CHUNK; ++i)
      if (r < m && column + c + i < n) d[r * ldd + column + c + i] = Output(v[i]);
  }
}

static __global__ void __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(const Input *__restrict__ a, int64_t lda, const Input *__restrict__ b, int64_t ldb, Output *__restrict__ d,
     int64_t ldd, int m, int n, int k) {
  extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
  SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
  if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    mbarrier_init(smem.acc_full[0], 1);
    fence_mbarrier_init();
  }
  if (warp == 0) {  // one warp of the CTA, which will also free
    tcgen05_alloc(smem.tmem[0], TMEM_COLUMNS);
    tcgen05_relinquish();  // others on this SM may allocate now
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  const uint32_t tmem = smem.tmem[0];

  uint32_t phase = 0;  // of acc_full
  const Tile tile{0, 0};
  load_k_tile<BLOCK_M>(smem.a, a, lda, tile.row, m, 0, k);
  load_k_tile<BLOCK_N>(smem.b, b, ldb, tile.column, n, 0, k);
  fence_proxy_async();  // the tensor core reads through the async proxy what the threads wrote
  __syncthreads();
  if (threadIdx.x == 0) {
    multiply(tmem, smem.a, smem.b, false);
    tcgen05_commit(smem.acc_full[0]);
  }
  mbarrier_wait(smem.acc_full[0], phase);
  tcgen05_fence_after();
  store(tmem, d, ldd, tile.row, tile.column, m, n);
  tcgen05_fence_before();
  __syncthreads();
  if (warp == 0) {
    tcgen05_fence_after();
    tcgen05_dealloc(tmem, TMEM_COLUMNS);
  }
}

#ifndef __CUDACC_RTC__  // the host half; NVRTC compiles only the kernel
static cudaError_t launch(const gemm_step1_args &args, cudaStream_t stream) {
  constexpr int64_t MAX_EXTENT = 0x7fff0000;  // coordinates are int, and the last tile may reach past the edge
  if (!args.a || !args.b || !args.d || args.m < 1 || args.n < 1 || args.k < 1) return cudaErrorInvalidValue;
  if (args.m > MAX_EXTENT || args.n > MAX_EXTENT || args.k > MAX_EXTENT) return cudaErrorInvalidValue;
  if (args.lda < args.k || args.ldb < args.k || args.ldd < args.n) return cudaErrorInvalidValue;
  if (args.m > BLOCK_M || args.n > BLOCK_N || args.k > BLOCK_K) return cudaErrorInvalidValue;  // one tile of everything
  int device = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (!error) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (!error) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (!error && (major != 10 || minor != 0)) error = cudaErrorNoKernelImageForDevice;
  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
  const Input *a = static_cast<const Input *>(args.a);
  int64_t lda = args.lda;
  const Input *b = static_cast<const Input *>(args.b);
  int64_t ldb = args.ldb;
  Output *d = static_cast<Output *>(args.d);
  int64_t ldd = args.ldd;
  const dim3 grid(1);
  if (!error) error = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  if (error) return error;
  void *parameters[] = {&a, &lda, &b, &ldb, &d, &ldd, &m, &n, &k};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
#endif

}  // namespace
}  // namespace gemm_step1

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t gemm_step1_launch(
    const struct gemm_step1_args *args, cudaStream_t stream) {
  return args == nullptr ? cudaErrorInvalidValue : gemm_step1::launch(*args, stream);
}
#endif
