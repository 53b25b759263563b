// gemm_fp8: D[m,n] = sum over k of A[m,k] * B[n,k], for B200 (sm_100a).
// e4m3 x e5m2 in, fp32 accumulate, bf16 out; A, B and D are row-major.
//
// A is e4m3 and B e5m2: the instruction mixes them. A k tile of 128 bytes is 128 elements deep, and one number brings
// D back from the scales of A and B.
// Before rounding: alpha.
//
// Shared memory, 229,480 bytes per CTA:
//         0  a          131072 B  k tiles of A
//    131072  b           65536 B  k tiles of B
//    196608  d           32768 B  D on its way out, private to each warp
//    229376  full           32 B  k tile has landed
//    229408  empty          32 B  k tile has been read
//    229440  acc_full       16 B  accumulator is complete
//    229456  acc_empty      16 B  accumulator has been read
//    229472  tmem            8 B  where tensor memory was allocated; [1] pads
// Barriers:
//   full[4]: 1 arrival (producer: 1 elected thread) and 98,304 bytes; the mma waits, first for parity 0
//   empty[4]: 2 arrivals (mma: 2 commits); the producer waits, first for parity 1
//   acc_full[2]: 1 arrival (mma: 1 commit); the epilogue waits, first for parity 0
//   acc_empty[2]: 8 arrivals (epilogue: 4 warps of 2 CTAs); the mma waits, first for parity 1
// Tensor memory, 512 of 512 columns:
//   0-255  acc of consumer 0: 128 x 256 fp32
//   256-511  acc of consumer 1: 128 x 256 fp32
// Warps:
//   0-7  epilogue: read their lanes of an accumulator, store them
//   8-9  mma: each: one elected thread of the pair's first CTA issues the MMAs of a consumer
//   10  producer: one elected thread keeps the ring full
// Build: nvcc -std=c++17 -O3 -gencode arch=compute_100a,code=sm_100a -c gemm_fp8.cu

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifndef __CUDACC_RTC__
#include "gemm_fp8.h"
#endif

#define DEVICE __device__ __forceinline__

namespace gemm_fp8 {
namespace {

using Input = uint8_t;  // e4m3 x e5m2
using Output = __nv_bfloat16;

constexpr int NUM_CONSUMERS = 2;                     // accumulators that each k tile of B feeds
constexpr int CONSUMER_M = 128;                      // rows of D per consumer: the lanes of tensor memory
constexpr int BLOCK_M = NUM_CONSUMERS * CONSUMER_M;  // rows of D per CTA
constexpr int BLOCK_N = 256;                         // columns of D per CTA; one MMA spans them
constexpr int BLOCK_K = 128;                         // depth of a k tile: one 128-byte swizzled row
constexpr int CLUSTER_SIZE = 2;                      // a pair of CTAs stacked along M, whose tensor cores work as one
constexpr int PAIR = 0b11;                           // both CTAs, where a commit signals them
constexpr int B_SLICE = BLOCK_N / CLUSTER_SIZE;      // rows of B that each CTA holds for both
constexpr int TILE_M = CLUSTER_SIZE * BLOCK_M;       // rows of D per pair
constexpr int TILE_N = BLOCK_N;                      // columns of D per pair

constexpr int MMA_M = CLUSTER_SIZE * CONSUMER_M;         // rows that one MMA computes
constexpr int MMA_K = 32 / sizeof(Input);                // depth of one MMA: 32 bytes of each row
constexpr int INPUT_FORMAT = 0 << 7 | 1 << 10;           // A is e4m3, B is e5m2
constexpr int INSTRUCTION = 1 << 4 | INPUT_FORMAT | BLOCK_N / 8 << 17 | MMA_M / 16 << 24;  // fp32 sums
constexpr int ACCUMULATORS = 1;                          // of each consumer, used in turn
constexpr int ACC_SLOTS = NUM_CONSUMERS * ACCUMULATORS;  // accumulators in tensor memory
constexpr int TMEM_COLUMNS = 512;                        // allocated: a power of two

constexpr int STAGES = 4;                             // k tiles in shared memory
constexpr int STAGE_BYTES = CLUSTER_SIZE * (BLOCK_M + B_SLICE) * BLOCK_K * sizeof(Input);  // of both CTAs
constexpr int EMPTY_ARRIVALS = NUM_CONSUMERS;         // a commit by each thread that issues MMAs
constexpr int ACC_EMPTY_ARRIVALS = 4 * CLUSTER_SIZE;  // every warp that reads the accumulator

constexpr int CTAS_PER_SM = 1;                           // resident together: no fewer, no more
constexpr int SMEM_BYTES = 229480;                       // dynamic
constexpr int SMEM_ALIGNMENT = 1024;                     // the 128-byte swizzle starts anew every 1024 bytes
constexpr int GROUP_M = 8;                               // rows of tiles walked before the next column
constexpr int MMA_WARP = 4 * NUM_CONSUMERS;              // the first of NUM_CONSUMERS that issue MMAs
constexpr int PRODUCER_WARP = MMA_WARP + NUM_CONSUMERS;
constexpr int NUM_THREADS = 32 * (PRODUCER_WARP + 1);
constexpr int CHUNK = 128 / sizeof(Output);              // columns of an accumulator in registers: one swizzled row
constexpr int STORE_ROWS = 32;                           // of 128 that a warp may read
constexpr int STORE_STEP = 16 / sizeof(Output);          // where a TMA store can end
constexpr int STAGING = 1;                               // store boxes per warp

struct SharedStorage {
  Input a[STAGES][BLOCK_M * BLOCK_K];                        // k tiles of A
  Input b[STAGES][B_SLICE * BLOCK_K];                        // k tiles of B
  Output d[4 * NUM_CONSUMERS][STAGING][STORE_ROWS * CHUNK];  // D on its way out, private to each warp
  uint64_t full[STAGES];                                     // k tile has landed
  uint64_t empty[STAGES];                                    // k tile has been read
  uint64_t acc_full[ACC_SLOTS];                              // accumulator is complete
  uint64_t acc_empty[ACC_SLOTS];                             // accumulator has been read
  uint32_t tmem[2];                                          // where tensor memory was allocated; [1] pads
};
static_assert(sizeof(SharedStorage) == 229480 && SMEM_BYTES >= 229480, "the map above");

// True in one lane of a converged warp.
DEVICE bool elect_one() {
  int elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected;
}

DEVICE uint32_t smem_address(const void *pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }
// Makes this thread's writes to shared memory visible to the TMA engine and the tensor core.
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

DEVICE void mbarrier_init(uint64_t &bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem_address(&bar)), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the TMA engine and to the other CTAs of a cluster.
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives on the barrier at the same place in CTA `rank` of the cluster. It carries no data, only the fact that reads
// are over, so CTA scope will do; cluster scope would flush caches on every k tile.
DEVICE void mbarrier_arrive_cluster(uint64_t &bar, int rank) {
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(smem_address(&bar)), "r"(rank) : "memory");
}
DEVICE void mbarrier_arrive_expect_tx(uint64_t &bar, uint32_t tx) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_address(&bar)), "r"(tx) : "memory");
}
DEVICE void mbarrier_wait(uint64_t &bar, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\n"
               "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra WAIT;\n}" :: "r"(smem_address(&bar)), "r"(parity) : "memory");
}

// As tma_load; the bytes count towards the `full` of the pair's first CTA, whichever CTA they land in.
DEVICE void tma_load_pair(void *box, const CUtensorMap &map, uint64_t &full, int x, int y) {
  asm volatile("{\n.reg .b32 first;\nmapa.shared::cluster.u32 first, %2, 0;\n"
               "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [first];\n}"
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

// Allocates tensor memory, by one whole warp in each CTA of the pair; its address lands in `where`.
DEVICE void tcgen05_alloc(uint32_t &where, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
               :: "r"(smem_address(&where)), "r"(columns) : "memory");
}
DEVICE void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}
DEVICE void tcgen05_dealloc(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" :: "r"(address), "r"(columns) : "memory");
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
               "tcgen05.mma.cta_group::2.kind::f8f6f4 [%0], %1, %2, %3, p;\n}"
               :: "r"(d), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(accumulate) : "memory");
}
// Arrives on `bar` of both CTAs once every MMA that this thread has issued so far is complete.
DEVICE void tcgen05_commit(uint64_t &bar) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
               :: "r"(smem_address(&bar)), "h"(static_cast<uint16_t>(PAIR)) : "memory");
}
// CHUNK columns of the 32 lanes from `address` on, a lane per thread; `v` may be read after tcgen05_wait_load.
DEVICE void tcgen05_load(float (&v)[CHUNK], uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x64.b32 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
               "[%64];"
      : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]),
        "=f"(v[8]), "=f"(v[9]), "=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]),
        "=f"(v[16]), "=f"(v[17]), "=f"(v[18]), "=f"(v[19]), "=f"(v[20]), "=f"(v[21]), "=f"(v[22]), "=f"(v[23]),
        "=f"(v[24]), "=f"(v[25]), "=f"(v[26]), "=f"(v[27]), "=f"(v[28]), "=f"(v[29]), "=f"(v[30]), "=f"(v[31]),
        "=f"(v[32]), "=f"(v[33]), "=f"(v[34]), "=f"(v[35]), "=f"(v[36]), "=f"(v[37]), "=f"(v[38]), "=f"(v[39]),
        "=f"(v[40]), "=f"(v[41]), "=f"(v[42]), "=f"(v[43]), "=f"(v[44]), "=f"(v[45]), "=f"(v[46]), "=f"(v[47]),
        "=f"(v[48]), "=f"(v[49]), "=f"(v[50]), "=f"(v[51]), "=f"(v[52]), "=f"(v[53]), "=f"(v[54]), "=f"(v[55]),
        "=f"(v[56]), "=f"(v[57]), "=f"(v[58]), "=f"(v[59]), "=f"(v[60]), "=f"(v[61]), "=f"(v[62]), "=f"(v[63])
      : "r"(address));
}
DEVICE void tcgen05_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

struct Tile { int row, column; };  // of its first element in D
// The order in which clusters compute tiles: GROUP_M rows of cluster tiles are walked one column at a time, so that
// clusters running at the same time share panels of A and B in L2. Each CTA takes its share of the cluster's tile.
DEVICE Tile tile_at(int index, int tiles_m, int tiles_n) {
  const int group = index / (GROUP_M * tiles_n), within = index % (GROUP_M * tiles_n);
  const int rows = min(GROUP_M, tiles_m - group * GROUP_M);  // the last group may be shorter
  const int tile_m = group * GROUP_M + within % rows, tile_n = within / rows;
  return {tile_m * TILE_M + cluster_rank() * BLOCK_M, tile_n * TILE_N};
}

// A place in a ring of DEPTH and the parity of its phase. It runs on from tile to tile, so K need not fill whole rings.
template <int DEPTH> struct Cursor {
  int slot = 0;
  uint32_t phase = 0;
  DEVICE void advance() {
    slot = slot + 1 == DEPTH ? 0 : slot + 1;
    phase ^= slot == 0;
  }
};

// One k tile into the accumulator at `acc`: MMA_K columns of A and B at a time, issued by one thread. Stepping along K
// inside a swizzled row is a plain addition of 32 bytes, because the swizzle acts on the final address.
DEVICE void multiply(uint32_t acc, const Input *a, const Input *b, bool accumulate) {
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += MMA_K)
    tcgen05_mma(acc, tcgen05_descriptor(a + k), tcgen05_descriptor(b + k), accumulate || k > 0);
}

// This warp has read its lanes of an accumulator; the CTA that issues the pair's MMAs must know.
DEVICE void release(uint64_t &acc_empty) {
  tcgen05_fence_before();
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive_cluster(acc_empty, 0);
}

// What the epilogue reads and where it leaves its sums.
struct Epilogue {
  int rows, columns;  // of D
  float alpha;
};

// What becomes of an element of D before it is rounded, in the order of the spec. Beyond D's edge, where nothing is
// stored, it reads the edge.
DEVICE float finish(float x, int row, int column, const Epilogue &e) {
  x = e.alpha * x;  // alpha
  return x;
}

// Finishes a thread's row of D: CHUNK columns of it.
DEVICE void finish_row(float (&v)[CHUNK], int row, int column, const Epilogue &e) {
#pragma unroll
  for (int i = 0; i < CHUNK; ++i) {
    if (i % 8 == 0) __syncwarp();  // keeps what is read for one column close to its use: registers are few
    v[i] = finish(v[i], row, column + i, e);
  }
}

DEVICE uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t *>(&pair);
}

// Writes this thread's row of a box to swizzled shared memory, 16 bytes at a time.
DEVICE void stage(Output *box, const float (&v)[CHUNK]) {
  const int row = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CHUNK; i += 8)
    reinterpret_cast<uint4 *>(box)[row * 8 + (i / 8 ^ row % 8)] =
        make_uint4(pack(v[i], v[i + 1]), pack(v[i + 2], v[i + 3]), pack(v[i + 4], v[i + 5]), pack(v[i + 6], v[i + 7]));
}

// The last columns of D where they are no whole 16 bytes: a TMA store can end only at a 16-byte step.
DEVICE void store_tail(const Output *box, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first = n / STORE_STEP * STORE_STEP, tail = n - first;
  for (int i = threadIdx.x % 32; i < STORE_ROWS * tail; i += 32) {
    const int r = i / tail, c = first + i % tail, chunk = (c - column) / STORE_STEP ^ r % 8;
    if (row + r < m) d[(row + r) * ldd + c] = box[r * CHUNK + chunk * STORE_STEP + c % STORE_STEP];
  }
}

// Writes D from this warp's 32 lanes of the accumulator at `acc`, through its boxes. `turn` runs on from tile to tile:
// it names the box used longest ago.
DEVICE void store(uint32_t acc, uint64_t &acc_empty, Output (&boxes)[STAGING][STORE_ROWS * CHUNK], int &turn,
                  const CUtensorMap &map_d, Output *d, int64_t ldd, int row, int column, int m, int n,
                  const Epilogue &e) {
  const bool leader = threadIdx.x % 32 == 0;
  const int first_lane = threadIdx.x / 32 % 4 * STORE_ROWS, box_row = row + first_lane;
  const int own_row = box_row + threadIdx.x % 32;
  for (int c = 0; c < BLOCK_N; c += CHUNK) {
    const int box_column = column + c;
    float v[CHUNK];
    tcgen05_load(v, acc + (first_lane << 16) + c);
    tcgen05_wait_load();
    if (c + CHUNK == BLOCK_N) release(acc_empty);  // all read: the next tile may be multiplied into it
    finish_row(v, own_row, box_column, e);
    if (leader) bulk_wait_read<STAGING - 1>();
    __syncwarp();  // the box is free
    stage(boxes[turn], v);
    fence_proxy_async();  // by every lane that wrote, before one lane's store reads
    __syncwarp();
    if (leader && box_column + STORE_STEP <= n) tma_store(map_d, boxes[turn], box_column, box_row);
    if (leader) bulk_commit();  // empty beyond the edge, so that groups keep counting boxes
    if (n % STORE_STEP != 0 && box_column < n && n < box_column + CHUNK)
      store_tail(boxes[turn], d, ldd, box_row, box_column, m, n);
    turn = turn + 1 == STAGING ? 0 : turn + 1;
  }
}

static __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(NUM_THREADS, CTAS_PER_SM)
gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
     const __grid_constant__ CUtensorMap map_d, Output *__restrict__ d, int64_t ldd, int m, int n, int k,
     const __grid_constant__ Epilogue e) {
  extern __shared__ __align__(SMEM_ALIGNMENT) unsigned char shared[];
  SharedStorage &smem = *reinterpret_cast<SharedStorage *>(shared);
  if (smem_address(shared) % SMEM_ALIGNMENT != 0) __trap();  // a misplaced swizzle pattern would compute garbage
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < STAGES; ++slot) {
      mbarrier_init(smem.full[slot], 1);
      mbarrier_init(smem.empty[slot], EMPTY_ARRIVALS);
    }
    for (int slot = 0; slot < ACC_SLOTS; ++slot) {
      mbarrier_init(smem.acc_full[slot], 1);
      mbarrier_init(smem.acc_empty[slot], ACC_EMPTY_ARRIVALS);
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // both CTAs run, before either takes part in an allocation
  if (warp == MMA_WARP) {  // one warp of the CTA, which will also free
    tcgen05_alloc(smem.tmem[0], TMEM_COLUMNS);
    tcgen05_relinquish();  // others on this SM may allocate now
  }
  tcgen05_fence_before();
  cluster_sync();
  tcgen05_fence_after();
  const uint32_t tmem = smem.tmem[0];

  if (warp == PRODUCER_WARP) {
    // Producer: one thread keeps the ring full.
    if (elect_one()) {
      Cursor<STAGES> ring;
      const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
      for (int index = blockIdx.x / CLUSTER_SIZE; index < tiles_m * tiles_n; index += gridDim.x / CLUSTER_SIZE) {
        const Tile tile = tile_at(index, tiles_m, tiles_n);
        for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
          mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);  // the ring starts empty: the first lap must pass
          if (cluster_rank() == 0) mbarrier_arrive_expect_tx(smem.full[ring.slot], STAGE_BYTES);  // for both CTAs
          tma_load_pair(smem.a[ring.slot], map_a, smem.full[ring.slot], k0, tile.row);
          tma_load_pair(smem.b[ring.slot], map_b, smem.full[ring.slot], k0, tile.column + cluster_rank() * B_SLICE);
          ring.advance();
        }
      }
      for (int slot = 0; slot < STAGES; ++slot) {  // no commit may signal a CTA that has left
        mbarrier_wait(smem.empty[ring.slot], ring.phase ^ 1);
        ring.advance();
      }
    }
  } else if (warp >= MMA_WARP) {
    // Issuers: one thread of the pair per consumer multiplies k tiles as they land.
    const int consumer = warp - MMA_WARP;
    if (cluster_rank() == 0 && elect_one()) {
      Cursor<STAGES> ring;
      Cursor<ACCUMULATORS> acc;
      const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
      for (int index = blockIdx.x / CLUSTER_SIZE; index < tiles_m * tiles_n; index += gridDim.x / CLUSTER_SIZE) {
        const Tile tile = tile_at(index, tiles_m, tiles_n);
        const int slot = consumer * ACCUMULATORS + acc.slot;
        mbarrier_wait(smem.acc_empty[slot], acc.phase ^ 1);  // the accumulators start empty as well
        tcgen05_fence_after();
        for (int k0 = 0; k0 < k; k0 += BLOCK_K) {
          mbarrier_wait(smem.full[ring.slot], ring.phase);
          tcgen05_fence_after();
          const Input *a = smem.a[ring.slot] + consumer * CONSUMER_M * BLOCK_K;
          multiply(tmem + slot * BLOCK_N, a, smem.b[ring.slot], k0 > 0);
          tcgen05_commit(smem.empty[ring.slot]);
          ring.advance();
        }
        tcgen05_commit(smem.acc_full[slot]);
        acc.advance();
      }
    }
  } else {
    // Epilogue: one warpgroup per consumer stores what its issuer has multiplied.
    const int consumer = warp / 4;
    Cursor<ACCUMULATORS> acc;
    int turn = 0;
    const int tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;  // in tiles of a cluster
    for (int index = blockIdx.x / CLUSTER_SIZE; index < tiles_m * tiles_n; index += gridDim.x / CLUSTER_SIZE) {
      const Tile tile = tile_at(index, tiles_m, tiles_n);
      const int slot = consumer * ACCUMULATORS + acc.slot;
      mbarrier_wait(smem.acc_full[slot], acc.phase);
      tcgen05_fence_after();
      store(tmem + slot * BLOCK_N, smem.acc_empty[slot], smem.d[warp], turn, map_d, d, ldd,
            tile.row + consumer * CONSUMER_M, tile.column, m, n, e);
      acc.advance();
    }
    if (threadIdx.x % 32 == 0) bulk_wait_read<0>();  // shared memory must outlive the last store's reads
  }
  tcgen05_fence_before();
  cluster_sync();
  if (warp == MMA_WARP) {
    tcgen05_fence_after();
    tcgen05_dealloc(tmem, TMEM_COLUMNS);
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

static cudaError_t launch(const gemm_fp8_args &args, cudaStream_t stream) {
  constexpr int64_t MAX_EXTENT = 0x7fff0000;  // coordinates are int, and the last tile may reach past the edge
  if (!args.a || !args.b || !args.d || args.m < 1 || args.n < 1 || args.k < 1) return cudaErrorInvalidValue;
  if (args.m > MAX_EXTENT || args.n > MAX_EXTENT || args.k > MAX_EXTENT) return cudaErrorInvalidValue;
  if (args.lda < args.k || args.ldb < args.k || args.ldd < args.n) return cudaErrorInvalidValue;
  int device = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (!error) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (!error) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (!error && (major != 10 || minor != 0)) error = cudaErrorNoKernelImageForDevice;
  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
  Output *d = static_cast<Output *>(args.d);
  int64_t ldd = args.ldd;
  const int64_t whole = (n < STORE_STEP ? 1 : n / STORE_STEP) * STORE_STEP;  // columns; store_tail writes the rest
  CUtensorMap map_a = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_UINT8, sizeof(Input), args.a, m, k,
                                 args.lda, BLOCK_M, BLOCK_K);
  CUtensorMap map_b = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_UINT8, sizeof(Input), args.b, n, k,
                                 args.ldb, B_SLICE, BLOCK_K);
  CUtensorMap map_d = tensor_map(error, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, sizeof(Output), args.d, m, whole,
                                 args.ldd, STORE_ROWS, CHUNK);
  Epilogue e = {m, n, args.alpha};
  int sms = 0;
  if (!error) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  const int ctas = sms * CTAS_PER_SM;
  const int64_t tiles = int64_t((m + TILE_M - 1) / TILE_M) * ((n + TILE_N - 1) / TILE_N), most = ctas / CLUSTER_SIZE;
  const dim3 grid(static_cast<unsigned>(tiles < most ? tiles : most) * CLUSTER_SIZE);
  if (!error) error = cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  if (error) return error;
  void *parameters[] = {&map_a, &map_b, &map_d, &d, &ldd, &m, &n, &k, &e};
  return cudaLaunchKernel(reinterpret_cast<const void *>(gemm), grid, NUM_THREADS, parameters, SMEM_BYTES, stream);
}
#endif

}  // namespace
}  // namespace gemm_fp8

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t gemm_fp8_launch(
    const struct gemm_fp8_args *args, cudaStream_t stream) {
  return args == nullptr ? cudaErrorInvalidValue : gemm_fp8::launch(*args, stream);
}
#endif
