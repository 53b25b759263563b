// gemm_step7: D[m,n] = sum over k of A[m,k] * B[n,k], for H100/H200 (sm_90a).
// bf16 in, fp32 accumulate, bf16 out; A, B and D are row-major.
//
// A producer warp does nothing but refill the ring, so it runs ahead into the next tile while the consumer warpgroup
// stores the last one. Empty barriers replace the CTA-wide barriers of the k loop.
//
// Shared memory, 180,288 bytes per CTA:
//         0  a        32768 B  k tiles of A
//     32768  b       131072 B  k tiles of B
//    163840  d        16384 B  D on its way out, private to each warp
//    180224  full        32 B  k tile has landed
//    180256  empty       32 B  k tile has been read
// Barriers:
//   full[4]: 1 arrival (producer: 1 elected thread) and 40,960 bytes; the consumer waits, first for parity 0
//   empty[4]: 4 arrivals (consumer: 4 warps); the producer waits, first for parity 1
// Warps:
//   0-3  consumer: multiply, then store their rows of D
//   4  producer: one elected thread keeps the ring full
// Build: nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -c gemm_step7.cu

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifndef __CUDACC_RTC__
#include "gemm_step7.h"
#endif

#define DEVICE __device__ __forceinline__

namespace gemm_step7 {
namespace {

using Input = __nv_bfloat16;
using Output = __nv_bfloat16;

constexpr int NUM_CONSUMERS = 1;                     // warpgroups that multiply and store
constexpr int CONSUMER_M = 64;                       // rows of D per consumer
constexpr int BLOCK_M = NUM_CONSUMERS * CONSUMER_M;  // rows of D per CTA
constexpr int BLOCK_N = 256;                         // columns of D per CTA; one wgmma spans them
constexpr int BLOCK_K = 64;                          // depth of a k tile: one 128-byte swizzled row
constexpr int M_BLOCKS = CONSUMER_M / 64;            // wgmma works on 64 rows

constexpr int STAGES = 4;                          // k tiles in shared memory
constexpr int STAGE_BYTES = (BLOCK_M + BLOCK_N) * BLOCK_K * sizeof(Input);  // what one phase of `full` waits for
constexpr int EMPTY_ARRIVALS = 4 * NUM_CONSUMERS;  // every consumer warp

constexpr int CTAS_PER_SM = 1;                       // resident together: no fewer, no more
constexpr int SMEM_BYTES = 180288;                   // dynamic
constexpr int SMEM_ALIGNMENT = 1024;                 // the 128-byte swizzle starts anew every 1024 bytes
constexpr int GROUP_M = 8;                           // rows of tiles walked before the next column
constexpr int PRODUCER_WARPS = 1;                    // one thread of it issues every load
constexpr int NUM_THREADS = 32 * (4 * NUM_CONSUMERS + PRODUCER_WARPS);
constexpr int STORE_ROWS = 16;                       // of 64 that a warp holds
constexpr int STORE_COLUMNS = 128 / sizeof(Output);  // one 128-byte swizzled row
constexpr int STORE_STEP = 16 / sizeof(Output);      // where a TMA store can end
constexpr int STAGING = 2;                           // store boxes per warp

struct SharedStorage {
  Input a[STAGES][BLOCK_M * BLOCK_K];  // k tiles of A
  Input b[STAGES][BLOCK_N * BLOCK_K];  // k tiles of B
  Output d[4 * NUM_CONSUMERS][STAGING][STORE_ROWS * STORE_COLUMNS];  // D on its way out, private to each warp
  uint64_t full[STAGES];               // k tile has landed
  uint64_t empty[STAGES];              // k tile has been read
};
static_assert(sizeof(SharedStorage) == 180288 && SMEM_BYTES >= 180288, "the map above");

// True in one lane of a converged warp.
DEVICE bool elect_one() {
  int elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected;
}

DEVICE uint32_t smem_address(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }
// Makes this thread's writes to shared memory visible to the TMA engine and the tensor core.
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
DEVICE void stmatrix_x4(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

DEVICE void mbarrier_init(uint64_t &bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem_address(&bar)), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the TMA engine and to the other CTAs of a cluster.
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void mbarrier_arrive(uint64_t &bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(smem_address(&bar)) : "memory");
}
DEVICE void mbarrier_arrive_expect_tx(uint64_t &bar, uint32_t tx) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_address(&bar)), "r"(tx) : "memory");
}
DEVICE void mbarrier_wait(uint64_t &bar, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\n"
               "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra WAIT;\n}" :: "r"(smem_address(&bar)), "r"(parity) : "memory");
}

// Copies the box at column x, row y to shared memory; its bytes count towards `full`. Outside the matrix it reads zero.
DEVICE void tma_load(void *box, const CUtensorMap &map, uint64_t &full, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];"
               :: "r"(smem_address(box)), "l"(&map), "r"(smem_address(&full)), "r"(x), "r"(y) : "memory");
}
// Copies a box from shared memory to column x, row y; what lies outside the matrix is not written.
DEVICE void tma_store(const CUtensorMap &map, const void *box, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               :: "l"(&map), "r"(smem_address(box)), "r"(x), "r"(y) : "memory");
}
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most N of this thread's store groups still read shared memory.
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }

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
// The order in which tiles are computed: GROUP_M rows of tiles are walked one column at a time, so that CTAs running at
// the same time share panels of A and B in L2.
DEVICE Tile tile_at(int index, int tiles_m, int tiles_n) {
  const int group = index / (GROUP_M * tiles_n), within = index % (GROUP_M * tiles_n);
  const int rows = min(GROUP_M, tiles_m - group * GROUP_M);  // the last group may be shorter
  const int tile_m = group * GROUP_M + within % rows, tile_n = within / rows;
  return {tile_m * BLOCK_M, tile_n * BLOCK_N};
}

// The stage to use next and the parity of its phase. It runs on from tile to tile, so K need not fill whole rings.
struct RingCursor {
  int stage = 0;
  uint32_t phase = 0;
  DEVICE void advance() {
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    phase ^= stage == 0;
  }
};

// D of one warpgroup. Of each 64 rows, warp w holds 16w to 16w+15; for every 8 columns lane l holds columns 2*(l%4) and
// 2*(l%4)+1 of row l/4, then of row l/4+8.
using Accumulators = float[M_BLOCKS][BLOCK_N / 2];
// Tells the compiler that the accumulators change here, so that no read of them moves above a wait.
DEVICE void pin(Accumulators &acc) {
#pragma unroll
  for (int i = 0; i < M_BLOCKS * BLOCK_N / 2; ++i) asm volatile("" : "+f"(acc[0][i])::"memory");
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

// This warp has read a stage.
DEVICE void release(uint64_t &empty) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}

DEVICE uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}

// Writes 64 columns of this warp's 16 rows to swizzled shared memory, four 8x8 matrices at a time.
DEVICE void stage(Output *box, const float *v) {
  const int row = threadIdx.x % 16, half = threadIdx.x / 16 % 2;
#pragma unroll
  for (int i = 0; i < STORE_COLUMNS / 16; ++i, v += 8)
    stmatrix_x4(smem_address(box) + row * 128 + ((2 * i + half) ^ row % 8) * 16, pack(v[0], v[1]), pack(v[2], v[3]),
                pack(v[4], v[5]), pack(v[6], v[7]));
}

// The last columns of D where they are no whole 16 bytes: a TMA store can end only at a 16-byte step.
DEVICE void store_tail(const Output *box, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first = n / STORE_STEP * STORE_STEP, tail = n - first;
  for (int i = threadIdx.x % 32; i < STORE_ROWS * tail; i += 32) {
    const int r = i / tail, c = first + i % tail, chunk = (c - column) / STORE_STEP ^ r % 8;
    if (row + r < m) d[(row + r) * ldd + c] = box[r * STORE_COLUMNS + chunk * STORE_STEP + c % STORE_STEP];
  }
}

// Writes this warp's rows of D through its boxes. `turn` runs on from tile to tile: it names the box used longest ago.
DEVICE void store(const Accumulators &acc, Output (&boxes)[STAGING][STORE_ROWS * STORE_COLUMNS], int &turn,
                  const CUtensorMap &map_d, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const bool leader = threadIdx.x % 32 == 0;
#pragma unroll
  for (int i = 0; i < M_BLOCKS * BLOCK_N / STORE_COLUMNS; ++i) {
    const int block = i / (BLOCK_N / STORE_COLUMNS), c = i % (BLOCK_N / STORE_COLUMNS) * STORE_COLUMNS;
    const int box_row = row + block * 64 + threadIdx.x / 32 % 4 * STORE_ROWS, box_column = column + c;
    if (leader) bulk_wait_read<STAGING - 1>();
    __syncwarp();  // the box is free
    stage(boxes[turn], acc[block] + c / 2);
    fence_proxy_async();  // by every lane that wrote, before one lane's store reads
    __syncwarp();
    if (leader && box_column + STORE_STEP <= n) tma_store(map_d, boxes[turn], box_column, box_row);
    if (leader) bulk_commit();  // empty beyond the edge, so that groups keep counting boxes
    if (n % STORE_STEP != 0 && box_column < n && n < box_column + STORE_COLUMNS)
      store_tail(boxes[turn], d, ldd, box_row, box_column, m, n);
    turn = turn + 1 == STAGING ? 0 : turn + 1;
  }
}

static __global__ void __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
     const __grid_constant__ CUtensorMap map_d, Output *__restrict__ d, int64_t ldd, int m, int n, int k) {
  extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
  SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
  if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(smem.full[stage], 1);
      mbarrier_init(smem.empty[stage], EMPTY_ARRIVALS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const int warp = threadIdx.x / 32;
  RingCursor ring;
  if (warp >= 4 * NUM_CONSUMERS) {
    // Producer: one thread keeps the ring full.
    if (warp == 4 * NUM_CONSUMERS && elect_one()) {
      const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
      for (int index = blockIdx.x; index < tiles_m * tiles_n; index += gridDim.x) {
        const Tile tile = tile_at(index, tiles_m, tiles_n);
        for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
          mbarrier_wait(smem.empty[ring.stage], ring.phase ^ 1);  // the ring starts empty: the first lap must pass
          mbarrier_arrive_expect_tx(smem.full[ring.stage], STAGE_BYTES);
          tma_load(smem.a[ring.stage], map_a, smem.full[ring.stage], k0, tile.row);
          tma_load(smem.b[ring.stage], map_b, smem.full[ring.stage], k0, tile.column);
          ring.advance();
        }
      }
    }
  } else {
    // Consumers: multiply k tiles as they land, then store.
    const int consumer = warp / 4;
    int turn = 0;
    const int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    for (int index = blockIdx.x; index < tiles_m * tiles_n; index += gridDim.x) {
      const Tile tile = tile_at(index, tiles_m, tiles_n);
      Accumulators acc;
      int previous = ring.stage;
      for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
        mbarrier_wait(smem.full[ring.stage], ring.phase);
        multiply(acc, smem.a[ring.stage] + consumer * CONSUMER_M * BLOCK_K, smem.b[ring.stage], k0 > 0);
        wgmma_wait<1>();  // this group stays in flight; the one before it has read its stage
        if (k0 > 0) release(smem.empty[previous]);
        previous = ring.stage;
        ring.advance();
      }
      wgmma_wait<0>();
      release(smem.empty[previous]);
      pin(acc);
      store(acc, smem.d[warp], turn, map_d, d, ldd, tile.row + consumer * CONSUMER_M, tile.column, m, n);
    }
    if (threadIdx.x % 32 == 0) bulk_wait_read<0>();  // shared memory must outlive the last store's reads
  }
}

#ifndef __CUDACC_RTC__  // the host half; NVRTC compiles only the kernel
// Describes a row-major [rows, columns] matrix to the TMA engine, moved in 128-byte swizzled boxes. The driver's
// encoder is looked up at run time, so nothing need link against libcuda. `error` keeps what went wrong first.
static CUtensorMap tensor_map(cudaError_t &error, CUtensorMapDataType type, size_t element, const void *start,
                              int64_t rows, int64_t columns, int64_t stride, uint32_t box_rows, uint32_t box_columns) {
  CUtensorMap map = {};
  void *entry = nullptr;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(stride) * element;
  const cuuint32_t box[] = {box_columns, box_rows}, steps[] = {1, 1};
  if (reinterpret_cast<uintptr_t>(start) % 16 != 0 || row_bytes % 16 != 0) error = cudaErrorMisalignedAddress;
  if (!error) error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault);
  if (!error && entry == nullptr) error = cudaErrorNotSupported;
  if (!error && reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
                    &map, type, 2, const_cast<void *>(start), extents, &row_bytes, box, steps,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    error = cudaErrorInvalidValue;
  return map;
}

static cudaError_t launch(const gemm_step7_args &args, cudaStream_t stream) {
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
  Output *d = static_cast<Output *>(args.d);
  int64_t ldd = args.ldd;
  const int64_t whole = (n < STORE_STEP ? 1 : n / STORE_STEP) * STORE_STEP;  // columns; store_tail writes the rest
  CUtensorMap map_a = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, sizeof(Input), args.a, m, k,
                                 args.lda, BLOCK_M, BLOCK_K);
  CUtensorMap map_b = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, sizeof(Input), args.b, n, k,
                                 args.ldb, BLOCK_N, BLOCK_K);
  CUtensorMap map_d = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, sizeof(Output), args.d, m, whole,
                                 args.ldd, STORE_ROWS, STORE_COLUMNS);
  int sms = 0;
  if (!error) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  const int ctas = sms * CTAS_PER_SM;
  const int64_t tiles = int64_t((m + BLOCK_M - 1) / BLOCK_M) * ((n + BLOCK_N - 1) / BLOCK_N);
  const dim3 grid(static_cast<unsigned>(tiles < ctas ? tiles : ctas));
  if (!error) error = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  if (error) return error;
  void *parameters[] = {&map_a, &map_b, &map_d, &d, &ldd, &m, &n, &k};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
#endif

}  // namespace
}  // namespace gemm_step7

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t gemm_step7_launch(
    const struct gemm_step7_args *args, cudaStream_t stream) {
  return args == nullptr ? cudaErrorInvalidValue : gemm_step7::launch(*args, stream);
}
#endif
