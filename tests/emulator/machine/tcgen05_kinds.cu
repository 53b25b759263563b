// One kernel per form of tcgen05.mma. The test lays out shared memory and writes every descriptor, so that a
// kernel covers all operand layouts of its form; scale factors go through tcgen05.cp, A through st, cp or neither.
#include "ptx.cuh"

constexpr uint32_t A_COLUMN = 256, SCALES = 384;  // scale factors lie beyond

struct Job {
  uint64_t a[8], b[8];      // descriptors of each K step, their start relative to shared memory
  uint64_t cp[8];           // what tcgen05.cp copies, relative likewise
  uint32_t cp_to[8];        // its columns; bit 31: the two halves of N in the two halves of the lanes
  uint32_t idesc[8];        // the scale factor ids change from step to step
  uint32_t sfa[8], sfb[8];  // columns
  uint32_t mask[8];         // lanes to leave alone
  uint32_t steps, copies, bytes, columns;
  uint32_t lane;     // of D and of A in tensor memory
  uint32_t prefill;  // the accumulator starts as lane + column
  uint32_t store_a;  // A is stored from registers: 8 words per step and lane
  uint32_t half;     // only 16 lanes of each warp hold results
};

enum Form { F16, F16_TS, WS, WS_TS, TF32, F8, F8_TS, I8, MASKED, SCALED_D, MXF8, MXF8_TS, MXF4, NVF4_16, NVF4_32,
            PAIR_F16, PAIR_F16_TS, PAIR_F8, PAIR_MASKED, PAIR_MXF8, PAIR_NVF4, COUNT };

struct Operands {
  uint32_t d, a_tmem, idesc, on, sfa, sfb;
  uint64_t a, b;
  const uint32_t *mask;
};

#define PRED "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\n"
#define SS(text) asm volatile(PRED text " [%0], %1, %2, %3, p;\n}" ::"r"(o.d), "l"(o.a), "l"(o.b), "r"(o.idesc), "r"(o.on) : "memory")
#define TS(text) asm volatile(PRED text " [%0], [%1], %2, %3, p;\n}" ::"r"(o.d), "r"(o.a_tmem), "l"(o.b), "r"(o.idesc), "r"(o.on) : "memory")
#define SCALED(text) asm volatile(PRED text " [%0], %1, %2, %3, [%5], [%6], p;\n}" \
  ::"r"(o.d), "l"(o.a), "l"(o.b), "r"(o.idesc), "r"(o.on), "r"(o.sfa), "r"(o.sfb) : "memory")
#define SCALED_TS(text) asm volatile(PRED text " [%0], [%1], %2, %3, [%5], [%6], p;\n}" \
  ::"r"(o.d), "r"(o.a_tmem), "l"(o.b), "r"(o.idesc), "r"(o.on), "r"(o.sfa), "r"(o.sfb) : "memory")

template <int FORM> __device__ void mma(const Operands &o) {
  if (FORM == F16) SS("tcgen05.mma.cta_group::1.kind::f16");
  if (FORM == F16_TS) TS("tcgen05.mma.cta_group::1.kind::f16");
  if (FORM == WS) SS("tcgen05.mma.ws.cta_group::1.kind::f16");
  if (FORM == WS_TS) TS("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill");
  if (FORM == TF32) SS("tcgen05.mma.cta_group::1.kind::tf32");
  if (FORM == F8) SS("tcgen05.mma.cta_group::1.kind::f8f6f4");
  if (FORM == F8_TS) TS("tcgen05.mma.cta_group::1.kind::f8f6f4");
  if (FORM == I8) SS("tcgen05.mma.cta_group::1.kind::i8");
  if (FORM == MASKED)
    asm volatile(PRED "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %6, %7, %8}, p;\n}"
                 ::"r"(o.d), "l"(o.a), "l"(o.b), "r"(o.idesc), "r"(o.on), "r"(o.mask[0]), "r"(o.mask[1]),
                 "r"(o.mask[2]), "r"(o.mask[3]) : "memory");
  if (FORM == SCALED_D)
    asm volatile(PRED "tcgen05.mma.cta_group::1.kind::f16.collector::a::lastuse [%0], %1, %2, %3, p, 3;\n}"
                 ::"r"(o.d), "l"(o.a), "l"(o.b), "r"(o.idesc), "r"(o.on) : "memory");
  if (FORM == MXF8) SCALED("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale");
  if (FORM == MXF8_TS) SCALED_TS("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32");
  if (FORM == MXF4) SCALED("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X");
  if (FORM == NVF4_16) SCALED("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16");
  if (FORM == NVF4_32) SCALED("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32");
  if (FORM == PAIR_F16) SS("tcgen05.mma.cta_group::2.kind::f16");
  if (FORM == PAIR_F16_TS) TS("tcgen05.mma.cta_group::2.kind::f16");
  if (FORM == PAIR_F8) SS("tcgen05.mma.cta_group::2.kind::f8f6f4");
  if (FORM == PAIR_MASKED)
    asm volatile(PRED "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p;\n}"
                 ::"r"(o.d), "l"(o.a), "l"(o.b), "r"(o.idesc), "r"(o.on), "r"(o.mask[0]), "r"(o.mask[1]),
                 "r"(o.mask[2]), "r"(o.mask[3]), "r"(o.mask[4]), "r"(o.mask[5]), "r"(o.mask[6]), "r"(o.mask[7])
                 : "memory");
  if (FORM == PAIR_MXF8) SCALED("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X");
  if (FORM == PAIR_NVF4) SCALED("tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X");
}

template <int GROUP> __device__ void copy_scales(uint32_t to, uint64_t desc) {
  if (GROUP == 1) asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(desc) : "memory");
  else asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(desc) : "memory");
}

template <int GROUP> __device__ void copy_halves(uint32_t to, uint64_t desc) {
  if (GROUP == 1) asm volatile("tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%0], %1;" ::"r"(to), "l"(desc) : "memory");
  else asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%0], %1;" ::"r"(to), "l"(desc) : "memory");
}

template <int GROUP> __device__ void copy_rows(uint32_t to, uint64_t desc) {
  if (GROUP == 1) asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(to), "l"(desc) : "memory");
  else asm volatile("tcgen05.cp.cta_group::2.128x256b [%0], %1;" ::"r"(to), "l"(desc) : "memory");
}

template <int FORM> __device__ void run(const Job &job, const uint8_t *images, const uint32_t *words, uint32_t *out) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ uint64_t bars[3];
  __shared__ uint32_t slot;
  constexpr int GROUP = FORM >= PAIR_F16 ? 2 : 1;
  const uint32_t rank = GROUP == 2 ? cluster_rank() : 0, warp = threadIdx.x / 32;
  const uint32_t full = smem(bars), ready = smem(bars + 1), done = smem(bars + 2);
  if (warp == 0) {
    if (elect()) {
      init(full, 1);
      init(ready, GROUP);
      init(done, 1);
      fence_init();
    }
    __syncwarp();
  }
  if (GROUP == 2) cluster_sync();  // the peer runs
  if (warp == 0) {
    alloc<GROUP>(smem(&slot), 512);
    relinquish<GROUP>();
  }
  fence_before();
  __syncthreads();
  if (GROUP == 2) cluster_sync();
  fence_after();
  const uint32_t tmem = slot, quarter = tmem + (warp * 32 << 16);
  uint32_t v[8];
  if (job.prefill) {
#pragma unroll 1
    for (uint32_t j = 0; j < job.columns; j += 8) {
      for (int i = 0; i < 8; i++) v[i] = __float_as_uint(float(threadIdx.x + j + i));
      store8(quarter + j, v);
    }
  }
  if (job.store_a) {
#pragma unroll 1
    for (uint32_t s = 0; s < job.steps; s++) {
      for (int i = 0; i < 8; i++) v[i] = words[((rank * job.steps + s) * 128 + threadIdx.x) * 8 + i];
      store8(quarter + A_COLUMN + 8 * s, v);
    }
  }
  wait_st();
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == 0 && elect()) {
    expect(full, job.bytes);
    bulk_load(smem(shared), images + rank * job.bytes, job.bytes, full);
    wait(full, 0);
    fence_before();
    arrive_at(ready, 0);
  } else if (warp == 1 && rank == 0 && elect()) {
    wait(ready, 0);
    fence_after();
    const uint64_t base = smem(shared) >> 4;
#pragma unroll 1
    for (uint32_t i = 0; i < job.copies; i++) {
      if (job.cp_to[i] < SCALES) copy_rows<GROUP>(tmem + job.cp_to[i], job.cp[i] + base);
      else if (job.cp_to[i] >> 31) copy_halves<GROUP>(tmem + (job.cp_to[i] & 0x7fffffffu), job.cp[i] + base);
      else copy_scales<GROUP>(tmem + job.cp_to[i], job.cp[i] + base);
    }
#pragma unroll 1
    for (uint32_t s = 0; s < job.steps; s++) {
      Operands o{tmem + (job.lane << 16), tmem + (job.lane << 16) + A_COLUMN + 8 * s, job.idesc[s],
                 s > 0 || job.prefill, tmem + job.sfa[s], tmem + job.sfb[s], job.a[s] + base, job.b[s] + base, job.mask};
      mma<FORM>(o);
    }
    if (GROUP == 1) commit(done);
    else commit_pair(done, 3);
  }
  __syncwarp();
  wait(done, 0);
  fence_after();
  uint32_t *line = out + (rank * 128 + threadIdx.x) * job.columns;
#pragma unroll 1
  for (uint32_t j = 0; j < job.columns; j += 8) {
    if (job.half) {
      // 16 lanes x 8 columns: rows t / 4 and t / 4 + 8, columns 2 * (t % 4) and the next.
      asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(quarter + (job.lane << 16) + j));
      wait_ld();
      const uint32_t t = threadIdx.x % 32;
      for (int i = 0; i < 4; i++)
        out[(warp * 32 + t / 4 + 8 * (i / 2) + job.lane) * job.columns + j + 2 * (t % 4) + i % 2] = v[i];
    } else {
      load8(v, quarter + j);
      wait_ld();
      for (int i = 0; i < 8; i++) line[j + i] = v[i];
    }
  }
  fence_before();
  __syncthreads();
  if (GROUP == 2) cluster_sync();
  fence_after();
  if (warp == 0) dealloc<GROUP>(tmem, 512);
}

#define KERNEL(name, form, ...)                                                                                  \
  extern "C" __global__ void __VA_ARGS__ __launch_bounds__(128) name(                                            \
      const __grid_constant__ Job job, const uint8_t *images, const uint32_t *words, uint32_t *out) {            \
    run<form>(job, images, words, out);                                                                          \
  }
KERNEL(f16, F16)
KERNEL(f16_ts, F16_TS)
KERNEL(ws, WS)
KERNEL(ws_ts, WS_TS)
KERNEL(tf32, TF32)
KERNEL(f8, F8)
KERNEL(f8_ts, F8_TS)
KERNEL(i8, I8)
KERNEL(masked, MASKED)
KERNEL(scaled_d, SCALED_D)
KERNEL(mxf8, MXF8)
KERNEL(mxf8_ts, MXF8_TS)
KERNEL(mxf4, MXF4)
KERNEL(nvf4_16, NVF4_16)
KERNEL(nvf4_32, NVF4_32)
KERNEL(pair_f16, PAIR_F16, __cluster_dims__(2, 1, 1))
KERNEL(pair_f16_ts, PAIR_F16_TS, __cluster_dims__(2, 1, 1))
KERNEL(pair_f8, PAIR_F8, __cluster_dims__(2, 1, 1))
KERNEL(pair_masked, PAIR_MASKED, __cluster_dims__(2, 1, 1))
KERNEL(pair_mxf8, PAIR_MXF8, __cluster_dims__(2, 1, 1))
KERNEL(pair_nvf4, PAIR_NVF4, __cluster_dims__(2, 1, 1))
