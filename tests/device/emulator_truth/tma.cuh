// TMA: swizzles by absolute address, out-of-bounds fill and byte counts, clipped stores, converting types.
#pragma once

#include "tma_map.cuh"

constexpr int REGION = 8192;

// status: {completed with the expected bytes, completed only after `extra` more, shared address of the region}
__global__ void tma_load_kernel(const __grid_constant__ CUtensorMap map, int c0, int c1, int destination,
                                uint32_t expected, uint32_t extra, uint8_t* out, uint32_t* status) {
    extern __shared__ uint8_t raw[];
    __shared__ uint64_t bar;
    uint8_t* region = aligned_1024(raw);
    for (int i = threadIdx.x; i < REGION; i += blockDim.x) region[i] = 0xEE;
    fence_proxy_async();
    if (threadIdx.x == 0) {
        mbarrier_init(&bar, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(&bar, expected + extra);
        tma_load_2d(region + destination, &map, c0, c1, &bar);
        status[0] = mbarrier_wait_bounded(&bar, 0);
        if (extra) {
            mbarrier_complete_tx(&bar, extra);
            status[1] = mbarrier_wait_bounded(&bar, 0);
        }
        status[2] = shared_address(region);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < REGION; i += blockDim.x) out[i] = region[i];
}

struct Load {
    std::vector<uint8_t> region;
    std::vector<uint32_t> status;
};

inline Load run_load(const CUtensorMap& map, int c0, int c1, int destination, uint32_t expected, uint32_t extra) {
    DeviceBuffer<uint8_t> out(REGION);
    DeviceBuffer<uint32_t> status(3);
    tma_load_kernel<<<1, 128, REGION + 1024>>>(map, c0, c1, destination, expected, extra, out.p, status.p);
    return {out.host(), status.host()};
}

// The region's 16-bit words hold 1 + the global index of the element that landed there; 0xEEEE if none did.
inline void tma_swizzle() {
    const int spans[7] = {128, 32, 64, 128, 128, 128, 128}, rows = 10;
    std::vector<uint16_t> global(64 * rows);
    for (size_t i = 0; i < global.size(); ++i) global[i] = static_cast<uint16_t>(i + 1);
    for (int mode = 0; mode < 7; ++mode) {
        int width = spans[mode] / 2;
        DeviceBuffer<uint16_t> source(global);
        CUtensorMap map;
        // A mode that the driver refuses is an answer, not the end of the others.
        int status = encode_map(map, arguments_2d(1, source.p, width, rows, spans[mode], width, rows, mode, 0));
        if (status) {
            printf("{\"experiment\": \"tma_swizzle_refused\", \"mode\": %d, \"status\": %d}\n", mode, status);
            continue;
        }
        for (int destination : {0, 128, 384, 1024 + 640}) {
            Load r = run_load(map, 0, 0, destination, rows * spans[mode], 0);
            r.region.resize(3072);
            printf("{\"experiment\": \"tma_swizzle\", \"mode\": %d, \"width\": %d, \"rows\": %d, "
                   "\"destination\": %d, \"completed\": %u, \"region_address\": %u, ",
                   mode, width, rows, destination, r.status[0], r.status[2]);
            print_hex("region", r.region);
            printf("}\n");
        }
    }
}

// A 40 x 10 tensor of bf16 patterns 1, 2, 3 ... read by 32 x 8 boxes that leave it on every side.
inline void tma_oob() {
    const int width = 40, height = 10, box0 = 32, box1 = 8;
    std::vector<uint16_t> global(width * height);
    for (size_t i = 0; i < global.size(); ++i) global[i] = static_cast<uint16_t>(i + 1);
    DeviceBuffer<uint16_t> source(global);
    const int at[5][2] = {{0, 0}, {24, 6}, {-8, -2}, {40, 10}, {-1000, 100000}};
    for (int oob = 0; oob < 2; ++oob)
        for (auto& c : at)
            for (uint32_t extra : {0u, 16u}) {
                CUtensorMap map = make_map_2d(9, source.p, width, height, width * 2, box0, box1, 0, oob);
                Load r = run_load(map, c[0], c[1], 0, box0 * box1 * 2, extra);
                r.region.resize(box0 * box1 * 2 + 16);
                printf("{\"experiment\": \"tma_oob\", \"nan\": %d, \"c0\": %d, \"c1\": %d, \"extra\": %u, "
                       "\"completed\": %u, \"completed_after_extra\": %u, ",
                       oob, c[0], c[1], extra, r.status[0], r.status[1]);
                print_hex("region", r.region);
                printf("}\n");
            }
    // The NaN of the other floating types: float16, float32, float64.
    for (int dtype : {6, 7, 8}) {
        int bytes = dtype == 6 ? 2 : dtype == 7 ? 4 : 8;
        DeviceBuffer<uint64_t> words(256);
        CUtensorMap map = make_map_2d(dtype, words.p, 16, 4, 16 * bytes, 16, 4, 0, 1);
        Load r = run_load(map, 16, 0, 0, 16 * 4 * bytes, 0);
        r.region.resize(16);
        printf("{\"experiment\": \"tma_oob_nan\", \"dtype\": %d, \"completed\": %u, ", dtype, r.status[0]);
        print_hex("region", r.region);
        printf("}\n");
    }
}

// A start that is not 16-byte aligned: seen to be an illegal instruction.
inline void tma_unaligned_start() {
    DeviceBuffer<uint16_t> source(400);
    CUtensorMap map = make_map_2d(9, source.p, 40, 10, 80, 32, 8, 0, 0);
    Load r = run_load(map, 4, 0, 0, 512, 0);
    printf("{\"experiment\": \"tma_unaligned_start\", \"completed\": %u}\n", r.status[0]);
}

// What the converting types do to crafted float32 words (FLOAT32, FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ).
inline void tma_types() {
    std::vector<uint32_t> words = {0x3F800000, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F802FFF, 0x3F803000, 0x3F803001,
                                   0xBF801000, 0xBF803000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x00801000,
                                   0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0xFFC12345,
                                   0x33801FFF, 0x00001FFF, 0x7F7FF000};
    words.resize(32, 0);
    DeviceBuffer<uint32_t> source(words);
    for (int dtype : {7, 10, 11, 12}) {
        CUtensorMap map = make_map_2d(dtype, source.p, 32, 1, 128, 32, 1, 0, 0);
        Load r = run_load(map, 0, 0, 0, 128, 0);
        r.region.resize(128);
        printf("{\"experiment\": \"tma_types\", \"dtype\": %d, \"completed\": %u, ", dtype, r.status[0]);
        print_hex("words", words);
        printf(", ");
        print_hex("region", r.region);
        printf("}\n");
    }
}

__global__ void tma_store_kernel(const __grid_constant__ CUtensorMap map, int c0, int c1, int words) {
    extern __shared__ uint8_t raw[];
    auto region = reinterpret_cast<uint16_t*>(aligned_1024(raw));
    for (int i = threadIdx.x; i < words; i += blockDim.x) region[i] = static_cast<uint16_t>(i + 1);
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) tma_store_2d(&map, c0, c1, region);
}

inline void tma_store(int c0, int c1) {
    const int width = 40, height = 10, box0 = 32, box1 = 8;
    DeviceBuffer<uint16_t> target(width * height + 64);
    CUtensorMap map = make_map_2d(9, target.p, width, height, width * 2, box0, box1, 0, 0);
    tma_store_kernel<<<1, 128, REGION + 1024>>>(map, c0, c1, box0 * box1);
    std::vector<uint16_t> got = target.host();
    printf("{\"experiment\": \"tma_store\", \"c0\": %d, \"c1\": %d, ", c0, c1);
    print_hex("tensor", got);
    printf("}\n");
}
