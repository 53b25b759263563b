// Shapes of kernel that public Blackwell code has: a persistent GEMM over two pairs of CTAs with multicast loads and
// cluster launch control, and attention whose P lies over its S in tensor memory.
#include "ptx.cuh"
#include <cuda.h>

// --- GEMM: clusters of four, 512 x 128 tiles, each pair 256 rows; both pairs need all of B ------------------------

constexpr uint32_t STAGES = 2, A_BYTES = 16384, B_BYTES = 8192, STAGE = A_BYTES + B_BYTES, N = 128;

struct Barriers {
  uint64_t full[STAGES], empty[STAGES], acc_full[2], acc_empty[2], clc_full, clc_empty;
};

__device__ inline uint64_t k_major(uint32_t at) {
  return uint64_t(at >> 4 & 0x3fff) | uint64_t(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

__device__ inline void tma(uint32_t to, const CUtensorMap &map, int x, int y, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
}

__device__ inline void tma_multicast(uint32_t to, const CUtensorMap &map, int x, int y, uint32_t bar, uint16_t mask) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
               ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar), "h"(mask) : "memory");
}

// The next tile of the cluster, or -1. Hands the response back to the scheduler in CTA 0.
__device__ int next_tile(Barriers *bars, const uint4 *response, uint32_t phase) {
  wait(smem(&bars->clc_full), phase);
  uint32_t ok, x;
  asm volatile("{\n.reg .b128 q;\n.reg .pred p;\nld.shared.b128 q, [%2];\n"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\nselp.u32 %0, 1, 0, p;\nmov.u32 %1, 0;\n"
               "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, _, _, _}, q;\n}"
               : "=r"(ok), "=r"(x) : "r"(smem(response)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (elect()) arrive_at(smem(&bars->clc_empty), 0);
  __syncwarp();
  return ok ? int(x / 4) : -1;
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256)
gemm_clc(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float *out, int blocks_m,
         int columns, int slabs, uint32_t idesc) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ Barriers bars;
  __shared__ __align__(16) uint4 response;
  __shared__ uint32_t slot;
  const uint32_t rank = cluster_rank(), warp = threadIdx.x / 32, leader = rank & ~1u;
  if (warp == 0 && elect()) {
    for (uint32_t s = 0; s < STAGES; s++) {
      init(smem(&bars.full[s]), 1);
      init(smem(&bars.empty[s]), 2);  // a commit of each pair
    }
    for (int s = 0; s < 2; s++) {
      init(smem(&bars.acc_full[s]), 1);
      init(smem(&bars.acc_empty[s]), 8);  // epilogue warps of the pair
    }
    init(smem(&bars.clc_full), 1);
    init(smem(&bars.clc_empty), 25);  // six warps of each CTA, and the scheduler
    fence_init();
  }
  __syncwarp();
  cluster_sync();  // barriers
  if (warp == 3) {
    alloc<2>(smem(&slot), 256);
    relinquish<2>();
  }
  fence_before();
  __syncthreads();
  cluster_sync();
  fence_after();
  const uint32_t tmem = slot;
  int tile = blockIdx.x / 4;
  if (warp == 0) {
    for (uint32_t i = 0, turn = 0; tile >= 0; turn++) {
      const int m = tile % blocks_m * 512 + rank * 128, n = tile / blocks_m * N + (rank & 1) * 64 + rank / 2 * 32;
      for (int k = 0; k < slabs; k++, i++) {
        const uint32_t s = i % STAGES, a = smem(shared) + s * STAGE, full = smem(&bars.full[s]) & 0xfeffffffu;
        wait(smem(&bars.empty[s]), (i / STAGES & 1) ^ 1);
        if (elect()) {
          if (rank == leader) expect(smem(&bars.full[s]), 2 * STAGE);
          tma(a, map_a, k * 64, m, full);
          tma_multicast(a + A_BYTES + rank / 2 * 4096, map_b, k * 64, n, full, 5 << (rank & 1));
        }
        __syncwarp();
      }
      tile = next_tile(&bars, &response, turn & 1);
    }
  } else if (warp == 1) {
    for (uint32_t i = 0, turn = 0; tile >= 0; turn++) {
      if (rank == leader) {
        const uint32_t acc = turn % 2;
        wait(smem(&bars.acc_empty[acc]), (turn / 2 & 1) ^ 1);
        fence_after();
        for (int k = 0; k < slabs; k++, i++) {
          const uint32_t s = i % STAGES, a = smem(shared) + s * STAGE;
          wait(smem(&bars.full[s]), i / STAGES & 1);
          fence_after();
          if (elect()) {
            for (int j = 0; j < 4; j++)
              asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\n"
                           "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}"
                           ::"r"(tmem + acc * N), "l"(k_major(a + 32 * j)), "l"(k_major(a + A_BYTES + 32 * j)),
                           "r"(idesc), "r"(k + j) : "memory");
            commit_pair(smem(&bars.empty[s]), 0xf);
            if (k == slabs - 1) commit_pair(smem(&bars.acc_full[acc]), 3 << leader);
          }
          __syncwarp();
        }
      }
      tile = next_tile(&bars, &response, turn & 1);
    }
  } else if (warp == 2) {
    if (rank == 0) {
      for (uint32_t turn = 0; tile >= 0; turn++) {
        wait(smem(&bars.clc_empty), (turn & 1) ^ 1);
        const uint32_t lane = threadIdx.x % 32;
        if (lane < 4)
          asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                       "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [there], 16;\n}"
                       ::"r"(smem(&bars.clc_full)), "r"(lane) : "memory");
        __syncwarp();
        if (elect())
          asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                       ".multicast::cluster::all.b128 [%0], [%1];"
                       ::"r"(smem(&response)), "r"(smem(&bars.clc_full)) : "memory");
        __syncwarp();
        tile = next_tile(&bars, &response, turn & 1);
      }
    }
  } else if (warp >= 4) {
    for (uint32_t turn = 0; tile >= 0; turn++) {
      const uint32_t acc = turn % 2, row = tile % blocks_m * 512 + rank * 128 + threadIdx.x % 128;
      wait(smem(&bars.acc_full[acc]), turn / 2 & 1);
      fence_after();
#pragma unroll 1
      for (uint32_t j = 0; j < N; j += 8) {
        uint32_t v[8];
        load8(v, tmem + (warp % 4 * 32 << 16) + acc * N + j);
        wait_ld();
        for (int i = 0; i < 8; i++) out[row * columns + tile / blocks_m * N + j + i] = __uint_as_float(v[i]);
      }
      fence_before();
      __syncwarp();
      if (elect()) arrive_at(smem(&bars.acc_empty[acc]), leader);
      __syncwarp();
      tile = next_tile(&bars, &response, turn & 1);
    }
  }
  __syncwarp();
  fence_before();
  __syncthreads();
  cluster_sync();  // all work done
  fence_after();
  if (warp == 3) dealloc<2>(tmem, 256);
}

// --- attention: S = Q K^T, P = clamp(S) over S, O += P V --------------------------------------------------------------

constexpr uint32_t O_COLUMN = 128, S2_COLUMN = 256;

// Q, then K tiles (K-major), then V tiles (N-major), 16 KB each, as the test lays them out.
// AHEAD: S of the next tile is issued before P V of this one, into a second buffer; else over P, right after P V.
// ONE_BAR is a mistake: with one barrier for both buffers, P of two tiles may be complete before the first is waited for.
template <bool AHEAD, bool ONE_BAR = false> __device__ void attention(const uint8_t *image, float *out, uint32_t tiles) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ uint64_t loaded, s_full[2], p_full[2], o_full;
  __shared__ uint32_t slot;
  const uint32_t warp = threadIdx.x / 32;
  if (warp == 4) {
    if (elect()) {
      init(smem(&loaded), 1);
      init(smem(&s_full[0]), 1);
      init(smem(&s_full[1]), 1);
      init(smem(&p_full[0]), 4);
      init(smem(&p_full[1]), 4);
      init(smem(&o_full), 1);
      fence_init();
    }
    __syncwarp();
    alloc<1>(smem(&slot), 512);
  }
  fence_before();
  __syncthreads();
  fence_after();
  const uint32_t tmem = slot;
  const auto s_at = [&](uint32_t i) { return tmem + (AHEAD && i % 2 ? S2_COLUMN : 0); };
  if (warp == 4 && elect()) {
    const uint32_t q = smem(shared), k = q + 16384, v = k + 16384 * tiles;
    expect(smem(&loaded), 16384 * (1 + 2 * tiles));
    for (uint32_t i = 0; i < 1 + 2 * tiles; i++) bulk_load(q + 16384 * i, image + 16384 * i, 16384, smem(&loaded));
    wait(smem(&loaded), 0);
    const auto scores = [&](uint32_t i) {
      for (uint32_t j = 0; j < 4; j++)
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
                     ::"r"(s_at(i)), "l"(k_major(q + 32 * j)), "l"(k_major(k + 16384 * i + 32 * j)),
                     "r"(0x08200490), "r"(j) : "memory");
      commit(smem(&s_full[AHEAD ? i % 2 : 0]));
    };
    scores(0);
    for (uint32_t i = 0; i < tiles; i++) {
      if (AHEAD && i + 1 < tiles) scores(i + 1);
      wait(smem(&p_full[AHEAD && !ONE_BAR ? i % 2 : 0]), AHEAD && !ONE_BAR ? i / 2 & 1 : i & 1);
      fence_after();
      for (uint32_t j = 0; j < 8; j++)
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}"
                     ::"r"(tmem + O_COLUMN), "r"(s_at(i) + 8 * j), "l"(k_major(v + 16384 * i + 2048 * j)),
                     "r"(0x08110490), "r"(i + j) : "memory");
      if (!AHEAD && i + 1 < tiles) scores(i + 1);
    }
    commit(smem(&o_full));
  } else if (warp < 4) {
    const uint32_t quarter = warp * 32 << 16;
    uint32_t v[8], p[8];
    for (uint32_t i = 0; i < tiles; i++) {
      wait(smem(&s_full[AHEAD ? i % 2 : 0]), AHEAD ? i / 2 & 1 : i & 1);
      fence_after();
#pragma unroll 1
      for (uint32_t j = 0; j < 128; j += 16) {
        for (uint32_t h = 0; h < 2; h++) {
          load8(v, s_at(i) + quarter + j + 8 * h);
          wait_ld();  // S
          for (int e = 0; e < 8; e += 2) {
            const float x = fminf(fmaxf(__uint_as_float(v[e]), -4), 4), y = fminf(fmaxf(__uint_as_float(v[e + 1]), -4), 4);
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p[4 * h + e / 2]) : "f"(y), "f"(x));
          }
        }
        store8(s_at(i) + quarter + j / 2, p);
      }
      wait_st();  // P
      fence_before();  // P
      __syncwarp();
      if (elect()) arrive(smem(&p_full[AHEAD && !ONE_BAR ? i % 2 : 0]));
      __syncwarp();
    }
    wait(smem(&o_full), 0);
    fence_after();  // O
    for (uint32_t j = 0; j < 64; j += 8) {
      load8(v, tmem + O_COLUMN + quarter + j);
      wait_ld();
      for (int i = 0; i < 8; i++) out[threadIdx.x * 64 + j + i] = __uint_as_float(v[i]);
    }
  }
  __syncwarp();
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == 4) {
    relinquish<1>();
    dealloc<1>(tmem, 512);
  }
}

extern "C" __global__ void __launch_bounds__(160) flash_ahead(const uint8_t *image, float *out, uint32_t tiles) {
  attention<true>(image, out, tiles);
}
extern "C" __global__ void __launch_bounds__(160) flash_in_turn(const uint8_t *image, float *out, uint32_t tiles) {
  attention<false>(image, out, tiles);
}
extern "C" __global__ void __launch_bounds__(160) flash_one_bar(const uint8_t *image, float *out, uint32_t tiles) {
  attention<true, true>(image, out, tiles);
}
