// Boxes over the right edge of a matrix whose rows end inside a 16-byte chunk: loads, stores and reductions.
#pragma once

#include "tma.cuh"

struct Edge {
    int dtype, element_bytes, width, swizzle, box_bytes, c0, c1;
};
constexpr int EDGE_ROWS = 5, EDGE_PITCH = 160, EDGE_BOX_ROWS = 4;

__global__ void edge_store_kernel(const __grid_constant__ CUtensorMap map, int rank, int c0, int c1, int add,
                                  uint32_t* address) {
    extern __shared__ uint8_t raw[];
    uint8_t* region = aligned_1024(raw);
    auto words = reinterpret_cast<uint16_t*>(region);
    for (int i = threadIdx.x; i < REGION / 2; i += blockDim.x) words[i] = static_cast<uint16_t>(i + 1);
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    *address = shared_address(region);
    if (rank == 1)
        tma_store_1d(&map, c0, region);
    else if (add)
        tma_add_2d(&map, c0, c1, region);
    else
        tma_store_2d(&map, c0, c1, region);
}

// The target holds 0xA5 bytes. `add` is a reduction with integer addition instead of a store.
inline void run_edge(const Edge& e, const char* what, int rank, int add) {
    std::vector<uint8_t> filled(EDGE_ROWS * EDGE_PITCH + 64, 0xA5);
    DeviceBuffer<uint8_t> memory(filled);
    uint32_t box0 = static_cast<uint32_t>(e.box_bytes / e.element_bytes);
    MapArguments m = arguments_2d(e.dtype, memory.p, e.width, EDGE_ROWS, EDGE_PITCH, box0, EDGE_BOX_ROWS, e.swizzle, 0);
    m.rank = rank;
    CUtensorMap map = make_map(m);
    DeviceBuffer<uint32_t> address(1);
    edge_store_kernel<<<1, 128, REGION + 1024>>>(map, rank, e.c0, e.c1, add, address.p);
    std::vector<uint8_t> got = memory.host();
    printf("{\"experiment\": \"%s\", \"dtype\": %d, \"rank\": %d, \"width\": %d, \"swizzle\": %d, \"box0\": %u, "
           "\"c0\": %d, \"c1\": %d, \"region_address\": %u, ",
           what, e.dtype, rank, e.width, e.swizzle, box0, e.c0, e.c1, address.host()[0]);
    print_hex("tensor", got);
    printf("}\n");
}

inline void run_edge_load(const Edge& e) {
    std::vector<uint8_t> filled(EDGE_ROWS * EDGE_PITCH + 64);
    for (size_t i = 0; i < filled.size(); ++i) filled[i] = static_cast<uint8_t>(i % 251 + 1);
    DeviceBuffer<uint8_t> memory(filled);
    uint32_t box0 = static_cast<uint32_t>(e.box_bytes / e.element_bytes);
    CUtensorMap map = make_map_2d(e.dtype, memory.p, e.width, EDGE_ROWS, EDGE_PITCH, box0, EDGE_BOX_ROWS, e.swizzle, 0);
    Load r = run_load(map, e.c0, e.c1, 0, static_cast<uint32_t>(e.box_bytes * EDGE_BOX_ROWS), 0);
    r.region.resize(EDGE_BOX_ROWS * 128);
    printf("{\"experiment\": \"tma_edge_load\", \"dtype\": %d, \"rank\": 2, \"width\": %d, \"swizzle\": %d, "
           "\"box0\": %u, \"c0\": %d, \"c1\": %d, \"completed\": %u, \"region_address\": %u, ",
           e.dtype, e.width, e.swizzle, box0, e.c0, e.c1, r.status[0], r.status[2]);
    print_hex("region", r.region);
    printf("}\n");
}

// bf16 rows of 72 bytes under every swizzle; then bytes and words, other remainders, starts and the last rows.
inline std::vector<Edge> edges() {
    std::vector<Edge> all;
    const int span[4] = {128, 32, 64, 128};
    for (int swizzle = 0; swizzle < 4; ++swizzle) {
        int start = 64 / span[swizzle] * span[swizzle] / 2;  // the box that holds the edge
        all.push_back({9, 2, 36, swizzle, span[swizzle], start, 0});
    }
    for (int width : {33, 39, 40}) all.push_back({9, 2, width, 3, 128, 0, 1});
    all.push_back({9, 2, 36, 3, 128, 32, 3});
    all.push_back({9, 2, 36, 3, 128, 40, 0});
    all.push_back({0, 1, 37, 0, 64, 0, 0});
    all.push_back({2, 4, 9, 3, 128, 0, 0});
    all.push_back({5, 8, 3, 0, 32, 0, 0});
    return all;
}

inline void tma_edge_store() {
    for (const Edge& e : edges()) run_edge(e, "tma_edge_store", 2, 0);
    run_edge({9, 2, 36, 0, 128, 0, 0}, "tma_edge_store", 1, 0);
}
inline void tma_edge_add() {
    for (int swizzle : {0, 3}) run_edge({2, 4, 9, swizzle, 128, 0, 0}, "tma_edge_add", 2, 1);
}
inline void tma_edge_load() {
    for (const Edge& e : edges()) run_edge_load(e);
}

inline void tma_unaligned_store() {
    run_edge({9, 2, 40, 0, 64, 4, 0}, "tma_edge_store", 2, 0);
}
