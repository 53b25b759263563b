// The arithmetic of mma.sync on the same inputs as wgmma's: one warp per 16 x 8 tile of D [64][128].
#pragma once

#include "wgmma.cuh"

#define MMA_SYNC(SHAPE_TYPES)                                                                            \
    asm volatile("mma.sync.aligned." SHAPE_TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "       \
                 "{%0, %1, %2, %3};"                                                                     \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

#define MMA_SYNC_F16(SHAPE_TYPES)                                                                        \
    asm volatile("mma.sync.aligned." SHAPE_TYPES " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"      \
                 : "+r"(d[0]), "+r"(d[1])                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

// 32 bytes of K per row make the operand registers the same bytes for every type.
template <int KIND>
__global__ void mma_sync_kernel(const uint8_t* a_rows, const uint8_t* b_rows, const uint32_t* c, uint32_t* out) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4, m = blockIdx.y * 16 + g, n = blockIdx.x * 8 + g;
    uint32_t a[4], b[2];
    auto word = [](const uint8_t* p) { return *reinterpret_cast<const uint32_t*>(p); };
    for (int i = 0; i < 4; ++i) a[i] = word(a_rows + (m + 8 * (i & 1)) * 32 + 4 * t + 16 * (i >> 1));
    for (int i = 0; i < 2; ++i) b[i] = word(b_rows + n * 32 + 4 * t + 16 * i);
    auto place = [&](int i) { return (m + 8 * (i / 2)) * 128 + blockIdx.x * 8 + 2 * t + i % 2; };
    if constexpr (packed_d(KIND)) {
        uint32_t d[2];
        for (int i = 0; i < 2; ++i) d[i] = (c[place(2 * i)] & 0xFFFF) | c[place(2 * i + 1)] << 16;
        if constexpr (KIND == F16_F16) MMA_SYNC_F16("m16n8k16.row.col.f16.f16.f16.f16");
        if constexpr (KIND == E4M3_F16) MMA_SYNC_F16("m16n8k32.row.col.f16.e4m3.e4m3.f16");
        if constexpr (KIND == E5M2_F16) MMA_SYNC_F16("m16n8k32.row.col.f16.e5m2.e5m2.f16");
        for (int i = 0; i < 4; ++i) out[place(i)] = d[i / 2] >> (16 * (i % 2)) & 0xFFFF;
    } else {
        float d[4];
        for (int i = 0; i < 4; ++i) d[i] = __uint_as_float(c[place(i)]);
        if constexpr (KIND == F16) MMA_SYNC("m16n8k16.row.col.f32.f16.f16.f32");
        if constexpr (KIND == BF16) MMA_SYNC("m16n8k16.row.col.f32.bf16.bf16.f32");
        if constexpr (KIND == TF32) MMA_SYNC("m16n8k8.row.col.f32.tf32.tf32.f32");
        if constexpr (KIND == E4M3) MMA_SYNC("m16n8k32.row.col.f32.e4m3.e4m3.f32");
        if constexpr (KIND == E5M2) MMA_SYNC("m16n8k32.row.col.f32.e5m2.e5m2.f32");
        if constexpr (KIND == MIXED) MMA_SYNC("m16n8k32.row.col.f32.e4m3.e5m2.f32");
        for (int i = 0; i < 4; ++i) out[place(i)] = __float_as_uint(d[i]);
    }
}
