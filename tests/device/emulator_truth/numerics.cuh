// One matrix instruction at a time on codes that the driver made.
#pragma once

#include "mma_sync.cuh"

// `input` holds blocks of A (2048 bytes), B (4096 bytes) and C (64 * 128 words); each D goes to `output` as words.
// Kinds from MMA_SYNC_KINDS on are mma.sync's.
constexpr int MMA_SYNC_KINDS = 16;

inline void numerics(int kind, const char* input, const char* output) {
    using Kernel = void (*)(const uint8_t*, const uint8_t*, const uint32_t*, uint32_t*);
    Kernel by_wgmma[KINDS] = {numerics_kernel<F16>,  numerics_kernel<BF16>,    numerics_kernel<TF32>,
                              numerics_kernel<E4M3>, numerics_kernel<E5M2>,    numerics_kernel<MIXED>,
                              nullptr,               numerics_kernel<F16_F16>, numerics_kernel<E4M3_F16>,
                              numerics_kernel<E5M2_F16>};
    Kernel by_mma_sync[KINDS] = {mma_sync_kernel<F16>, mma_sync_kernel<BF16>, mma_sync_kernel<TF32>,
                                 mma_sync_kernel<E4M3>, mma_sync_kernel<E5M2>, mma_sync_kernel<MIXED>, nullptr,
                                 mma_sync_kernel<F16_F16>, mma_sync_kernel<E4M3_F16>,
                                 mma_sync_kernel<E5M2_F16>};
    bool sync = kind >= MMA_SYNC_KINDS;
    int type = sync ? kind - MMA_SYNC_KINDS : kind;
    Kernel kernel = type < 0 || type >= KINDS ? nullptr : (sync ? by_mma_sync : by_wgmma)[type];
    FILE *in = fopen(input, "rb"), *to = fopen(output, "wb");
    if (!kernel || !in || !to) {
        printf("{\"error\": \"kind %d, input %s, output %s\"}\n", kind, input, output);
        _Exit(3);
    }
    std::vector<uint8_t> a(2048), b(4096);
    std::vector<uint32_t> c(64 * 128);
    int blocks = 0;
    while (fread(a.data(), 1, a.size(), in) == a.size() && fread(b.data(), 1, b.size(), in) == b.size() &&
           fread(c.data(), 4, c.size(), in) == c.size()) {
        DeviceBuffer<uint8_t> da(a), db(b);
        DeviceBuffer<uint32_t> dc(c), out(c.size());
        if (sync)
            kernel<<<dim3(16, 4), 32>>>(da.p, db.p, dc.p, out.p);
        else
            kernel<<<1, 128, 16384>>>(da.p, db.p, dc.p, out.p);
        std::vector<uint32_t> got = out.host();
        if (fwrite(got.data(), 4, got.size(), to) != got.size()) _Exit(3);
        ++blocks;
    }
    if (fclose(to)) _Exit(3);
    printf("{\"experiment\": \"numerics\", \"kind\": %d, \"blocks\": %d}\n", kind, blocks);
}
