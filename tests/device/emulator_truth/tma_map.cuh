// Making tensor maps, and which ones the driver refuses.
#pragma once

#include "ptx.cuh"

#include <cudaTypedefs.h>

// A version that the driver is too old for gives a null pointer.
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder(int version = 12000) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, version, cudaEnableDefault, &result));
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
}

struct MapArguments {
    int dtype = 9, rank = 2;
    uint64_t address = 0;
    uint64_t dim[3] = {256, 100, 4}, strides[2] = {512, 65536};
    uint32_t box[3] = {16, 8, 2}, steps[3] = {1, 1, 1};
    int interleave = 0, swizzle = 0, oob = 0;
};

inline CUresult encode_map(CUtensorMap& map, const MapArguments& m, int version = 12000) {
    cuuint64_t dims[3], strides[2];
    cuuint32_t box[3], steps[3];
    for (int i = 0; i < 3; ++i) dims[i] = m.dim[i], box[i] = m.box[i], steps[i] = m.steps[i];
    for (int i = 0; i < 2; ++i) strides[i] = m.strides[i];
    auto encoder = tensor_map_encoder(version);
    if (!encoder) return CUDA_ERROR_NOT_FOUND;
    return encoder(&map, static_cast<CUtensorMapDataType>(m.dtype), static_cast<cuuint32_t>(m.rank),
                   reinterpret_cast<void*>(m.address), dims, strides, box, steps,
                   static_cast<CUtensorMapInterleave>(m.interleave), static_cast<CUtensorMapSwizzle>(m.swizzle),
                   CU_TENSOR_MAP_L2_PROMOTION_NONE, static_cast<CUtensorMapFloatOOBfill>(m.oob));
}

// A map that must exist for the experiment to go on.
inline CUtensorMap make_map(const MapArguments& m) {
    CUtensorMap map;
    CUresult status = encode_map(map, m);
    if (status != CUDA_SUCCESS) {
        printf("{\"error\": \"cuTensorMapEncodeTiled: %d\"}\n", static_cast<int>(status));
        fflush(stdout);
        _Exit(3);
    }
    return map;
}

inline MapArguments arguments_2d(int dtype, void* address, uint64_t width, uint64_t height, uint64_t pitch,
                                 uint32_t box0, uint32_t box1, int swizzle, int oob) {
    MapArguments m;
    m.dtype = dtype, m.address = reinterpret_cast<uint64_t>(address);
    m.dim[0] = width, m.dim[1] = height, m.strides[0] = pitch, m.box[0] = box0, m.box[1] = box1;
    m.swizzle = swizzle, m.oob = oob;
    return m;
}
inline CUtensorMap make_map_2d(int dtype, void* address, uint64_t width, uint64_t height, uint64_t pitch,
                               uint32_t box0, uint32_t box1, int swizzle, int oob) {
    return make_map(arguments_2d(dtype, address, width, height, pitch, box0, box1, swizzle, oob));
}

template <typename T>
void print_list(const char* name, const T* values, int n) {
    printf("\"%s\": [", name);
    for (int i = 0; i < n; ++i) printf("%s%llu", i ? ", " : "", static_cast<unsigned long long>(values[i]));
    printf("], ");
}

// One rule of cuTensorMapEncodeTiled at a time; `offset` is the address less that of a good allocation.
inline void map_rules() {
    DeviceBuffer<uint8_t> memory(1 << 20);
    uint64_t base = reinterpret_cast<uint64_t>(memory.p);
    std::vector<MapArguments> all;
    auto with = [&](auto change) {
        MapArguments m;
        m.address = base;
        change(m);
        all.push_back(m);
    };
    with([](MapArguments&) {});
    // Why the larger atoms are refused: the type, the width of the box, or the device?
    for (int mode = 0; mode < 8; ++mode)
        for (int dtype : {0, 1, 7})
            for (uint32_t bytes : {16u, 32u, 64u, 128u, 256u})
                with([=](MapArguments& m) {
                    m.swizzle = mode, m.dtype = dtype;
                    m.box[0] = dtype == 0 ? bytes : dtype == 7 ? bytes / 4 : bytes / 2;
                });
    for (uint64_t offset : {4, 8, 16, 32}) with([=](MapArguments& m) { m.address += offset; });
    for (uint64_t pitch : {0ull, 16ull, 24ull, 496ull, 520ull, (1ull << 40) - 16, 1ull << 40})
        with([=](MapArguments& m) { m.strides[0] = pitch; });
    for (uint64_t dim : {0ull, 1ull, 1ull << 32, (1ull << 32) + 1}) with([=](MapArguments& m) { m.dim[1] = dim; });
    for (uint32_t box : {0u, 1u, 8u, 12u, 256u, 257u}) with([=](MapArguments& m) { m.box[0] = box; });
    for (uint32_t box : {0u, 1u, 256u, 257u}) with([=](MapArguments& m) { m.box[1] = box; });
    for (int d : {0, 1})
        for (uint32_t step : {0u, 2u, 8u, 9u}) with([=](MapArguments& m) { m.steps[d] = step; });
    for (int dtype = 0; dtype < 17; ++dtype)
        for (int oob : {0, 1})
            with([=](MapArguments& m) {
                m.dtype = dtype, m.oob = oob;
                m.box[0] = dtype >= 13 ? 128 : 16;
            });
    for (int interleave : {0, 1, 2})
        for (int rank : {1, 2, 3})
            for (int swizzle : {0, 1, 3})
                with([=](MapArguments& m) { m.interleave = interleave, m.rank = rank, m.swizzle = swizzle; });
    int driver = 0, major = 0;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    for (const MapArguments& m : all) {
        CUtensorMap map;
        int old_entry = encode_map(map, m), newest_entry = encode_map(map, m, driver);
        printf("{\"experiment\": \"map_rule\", \"dtype\": %d, ", m.dtype);
        print_list("offset", std::vector<uint64_t>{m.address - base}.data(), 1);
        print_list("dim", m.dim, m.rank);
        print_list("strides", m.strides, m.rank - 1);
        print_list("box", m.box, m.rank);
        print_list("steps", m.steps, m.rank);
        printf("\"interleave\": %d, \"swizzle\": %d, \"oob\": %d, \"status\": %d, \"newest_status\": %d, "
               "\"driver\": %d, \"major\": %d}\n",
               m.interleave, m.swizzle, m.oob, old_entry, newest_entry, driver, major);
    }
}
