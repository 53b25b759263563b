// One CTA (or a pair) computes a 128 x N (256 x N) tile on tcgen05, written straight from the PTX ISA.
#include <cstdint>
#include <cuda.h>

__device__ uint32_t smem(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra WAIT;\n}"
               ::"r"(bar), "r"(parity) : "memory");
}

__device__ bool elect() {
  uint32_t p;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(p));
  return p;
}

// K-major, 128-byte swizzle: 8 rows of 128 bytes per 1024-byte atom.
__device__ uint64_t descriptor(uint32_t address) {
  return uint64_t(address >> 4 & 0x3fff) | uint64_t(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

template <int KIND> __device__ void mma(uint32_t d, uint64_t a, uint64_t b, uint32_t idesc, uint32_t on) {
  if (KIND == 0)
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
                 ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(on));
  if (KIND == 1)
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;\n}"
                 ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(on));
  if (KIND == 2)
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;\n}"
                 ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(on));
  if (KIND == 3)
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}"
                 ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"(on));
}

// Rows of K are 128 bytes; each of `steps` stages holds one such slab, and 4 instructions use it up.
template <int KIND, int N>
__device__ void gemm(const CUtensorMap &map_a, const CUtensorMap &map_b, float *out, int steps, int per, uint32_t idesc) {
  extern __shared__ __align__(1024) uint8_t shared[];
  constexpr int PAIR = KIND == 3 ? 2 : 1;
  uint8_t *a = shared, *b = shared + 16384;
  uint64_t *full = reinterpret_cast<uint64_t *>(shared + 16384 + N / PAIR * 128), *empty = full + 1, *done = full + 2;
  uint32_t *slot = reinterpret_cast<uint32_t *>(full + 3);
  uint32_t rank = 0;
  if (PAIR == 2) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int warp = threadIdx.x / 32;
  if (warp == 0) {
    if (elect()) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(full)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(empty)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(done)));
      asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncwarp();
  }
  if (PAIR == 2) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (warp == 0) {
    if (PAIR == 1)
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 256;" ::"r"(smem(slot)) : "memory");
    else
      asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 256;" ::"r"(smem(slot)) : "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;");
  __syncthreads();
  if (PAIR == 2) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::after_thread_sync;");
  const uint32_t tmem = *slot;
  if (warp == 0 && elect()) {
    const uint32_t bar = smem(full) & (PAIR == 2 ? 0xfeffffffu : 0xffffffffu);
    for (int i = 0; i < steps; i++) {
      wait(smem(empty), (i & 1) ^ 1);
      if (rank == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(smem(full)), "r"(PAIR * (16384 + N / PAIR * 128)) : "memory");
      if (PAIR == 1) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(smem(a)), "l"(&map_a), "r"(i * per), "r"(0), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(smem(b)), "l"(&map_b), "r"(i * per), "r"(0), "r"(bar) : "memory");
      } else {
        asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(smem(a)), "l"(&map_a), "r"(i * per), "r"(int(rank) * 128), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(smem(b)), "l"(&map_b), "r"(i * per), "r"(int(rank) * N / 2), "r"(bar) : "memory");
      }
    }
  } else if (warp == 1 && rank == 0 && elect()) {
    for (int i = 0; i < steps; i++) {
      wait(smem(full), i & 1);
      asm volatile("tcgen05.fence::after_thread_sync;");
      for (int k = 0; k < 4; k++)
        mma<KIND>(tmem, descriptor(smem(a) + 32 * k), descriptor(smem(b) + 32 * k), idesc, i > 0 || k > 0);
      if (PAIR == 1)
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem(empty)) : "memory");
      else
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                     ::"r"(smem(empty)), "h"(uint16_t(3)) : "memory");
    }
    if (PAIR == 1)
      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem(done)) : "memory");
    else
      asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                   ::"r"(smem(done)), "h"(uint16_t(3)) : "memory");
  }
  __syncwarp();
  wait(smem(done), 0);
  asm volatile("tcgen05.fence::after_thread_sync;");
  for (int j = 0; j < N; j += 8) {
    float v[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                 : "r"(tmem + (uint32_t(warp * 32) << 16) + j));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; i++) out[(rank * 128 + threadIdx.x) * N + j + i] = v[i];
  }
  asm volatile("tcgen05.fence::before_thread_sync;");
  __syncthreads();
  if (PAIR == 2) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::after_thread_sync;");
  if (warp == 0) {
    if (PAIR == 1) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 256;" ::"r"(tmem));
    else asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 256;" ::"r"(tmem));
  }
}

#define KERNEL(name, kind, n, ...)                                                                            \
  extern "C" __global__ void __VA_ARGS__ __launch_bounds__(128)                                               \
  name(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *out, int steps,   \
       int per, uint32_t idesc) { gemm<kind, n>(a, b, out, steps, per, idesc); }
KERNEL(gemm_f16, 0, 128)
KERNEL(gemm_tf32, 1, 64)
KERNEL(gemm_f8, 2, 256)
KERNEL(gemm_pair, 3, 128, __cluster_dims__(2, 1, 1))
