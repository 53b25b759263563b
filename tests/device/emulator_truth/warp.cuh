// Small questions: mbarrier parity and counts, ldmatrix and stmatrix, elect.sync, cluster addresses, multicast.
#pragma once

#include "ptx.cuh"
#include "tma.cuh"

// --- mbarrier -------------------------------------------------------------------------------------------------

// Each pair of bits in `out` is test_wait(parity 0), test_wait(parity 1) after one step of the script.
__global__ void mbarrier_kernel(uint32_t* out) {
    __shared__ uint64_t bar;
    int n = 0;
    auto note = [&] {
        out[n++] = mbarrier_test_parity(&bar, 0);
        out[n++] = mbarrier_test_parity(&bar, 1);
    };
    mbarrier_init(&bar, 2);
    fence_mbarrier_init();
    note();  // fresh
    mbarrier_arrive(&bar);
    note();  // one of two
    mbarrier_arrive(&bar);
    note();  // phase 0 over
    mbarrier_arrive(&bar);
    mbarrier_arrive(&bar);
    note();  // phase 1 over
    mbarrier_arrive_expect_tx(&bar, 64);
    mbarrier_arrive(&bar);
    note();  // all arrived, 64 bytes missing
    mbarrier_complete_tx(&bar, 48);
    note();  // 16 missing
    mbarrier_complete_tx(&bar, 16);
    note();  // phase 2 over
    mbarrier_complete_tx(&bar, 32);
    note();  // bytes before they are expected: the count is negative, the phase stays open
    mbarrier_expect_tx(&bar, 32);
    mbarrier_arrive(&bar);
    note();
    mbarrier_arrive(&bar);
    note();  // phase 3 over
}

inline void mbarrier_parity() {
    DeviceBuffer<uint32_t> out(20);
    mbarrier_kernel<<<1, 1>>>(out.p);
    std::vector<uint32_t> got = out.host();
    printf("{\"experiment\": \"mbarrier_parity\", \"steps\": [");
    for (size_t i = 0; i < got.size(); i += 2) printf("%s[%u, %u]", i ? ", " : "", got[i], got[i + 1]);
    printf("]}\n");
}

// --- ldmatrix, stmatrix ---------------------------------------------------------------------------------------

// Shared row r (16 bytes) holds the 16-bit values 8 r + column; lane l gives the address of row l.
#define LDMATRIX(COUNT, TRANS, LIST, ...)                                                                     \
    asm volatile("ldmatrix.sync.aligned.m8n8." COUNT TRANS ".shared.b16 " LIST : __VA_ARGS__ : "r"(address))

__global__ void ldmatrix_kernel(int count, int transposed, uint32_t* out) {
    __shared__ alignas(128) uint16_t rows[32 * 8];
    for (int i = threadIdx.x; i < 256; i += 32) rows[i] = static_cast<uint16_t>(i);
    __syncwarp();
    uint32_t address = shared_address(rows + 8 * threadIdx.x), d[4] = {};
    if (count == 1 && !transposed) LDMATRIX("x1", "", "{%0}, [%1];", "=r"(d[0]));
    if (count == 1 && transposed) LDMATRIX("x1", ".trans", "{%0}, [%1];", "=r"(d[0]));
    if (count == 2 && !transposed) LDMATRIX("x2", "", "{%0, %1}, [%2];", "=r"(d[0]), "=r"(d[1]));
    if (count == 2 && transposed) LDMATRIX("x2", ".trans", "{%0, %1}, [%2];", "=r"(d[0]), "=r"(d[1]));
#define ALL4 "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
    if (count == 4 && !transposed) LDMATRIX("x4", "", "{%0, %1, %2, %3}, [%4];", ALL4);
    if (count == 4 && transposed) LDMATRIX("x4", ".trans", "{%0, %1, %2, %3}, [%4];", ALL4);
#undef ALL4
    for (int i = 0; i < count; ++i) out[threadIdx.x * count + i] = d[i];
}

// Register q of lane l holds the values 8 l + 2 q (low) and 8 l + 2 q + 1 (high).
__global__ void stmatrix_kernel(int transposed, uint16_t* out) {
    __shared__ alignas(128) uint16_t rows[32 * 8];
    uint32_t address = shared_address(rows + 8 * threadIdx.x), d[4];
    for (int q = 0; q < 4; ++q) d[q] = (8 * threadIdx.x + 2 * q) | (8 * threadIdx.x + 2 * q + 1) << 16;
    if (transposed)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                     "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3])
                     : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(d[0]),
                     "r"(d[1]), "r"(d[2]), "r"(d[3])
                     : "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) out[i] = rows[i];
}

inline void matrix_moves() {
    for (int transposed : {0, 1}) {
        for (int count : {1, 2, 4}) {
            DeviceBuffer<uint32_t> out(32 * count);
            ldmatrix_kernel<<<1, 32>>>(count, transposed, out.p);
            printf("{\"experiment\": \"ldmatrix\", \"count\": %d, \"transposed\": %d, ", count, transposed);
            print_hex("registers", out.host());
            printf("}\n");
        }
        DeviceBuffer<uint16_t> rows(256);
        stmatrix_kernel<<<1, 32>>>(transposed, rows.p);
        printf("{\"experiment\": \"stmatrix\", \"count\": 4, \"transposed\": %d, ", transposed);
        print_hex("rows", rows.host());
        printf("}\n");
    }
}

// --- elect.sync -----------------------------------------------------------------------------------------------

__global__ void elect_kernel(uint32_t mask, uint32_t* out) {
    uint32_t lane = threadIdx.x, leader = 99, elected = 0;
    if (mask >> lane & 1)
        asm volatile(
            "{\n.reg .pred p;\nelect.sync %0|p, %2;\nselp.u32 %1, 1, 0, p;\n}"
            : "=r"(leader), "=r"(elected)
            : "r"(mask));
    out[lane] = leader | elected << 8;
}

inline void elect() {
    for (uint32_t mask : {0xFFFFFFFFu, 0xFFFF0000u, 0x80000001u, 0x00000100u, 0xAAAAAAAAu, 0x80000000u}) {
        DeviceBuffer<uint32_t> out(32);
        elect_kernel<<<1, 32>>>(mask, out.p);
        std::vector<uint32_t> got = out.host();
        printf("{\"experiment\": \"elect\", \"mask\": %u, \"leader\": [", mask);
        for (int i = 0; i < 32; ++i) printf("%s%u", i ? ", " : "", got[i] & 255);
        printf("], \"elected\": [");
        for (int i = 0; i < 32; ++i) printf("%s%u", i ? ", " : "", got[i] >> 8);
        printf("]}\n");
    }
}

// --- clusters -------------------------------------------------------------------------------------------------

// Per CTA: rank, address of the static and of the dynamic shared memory, mapa of the former for ranks 0..3,
// getctarank of those, and who wrote through an address put together by hand.
constexpr int CLUSTER_WORDS = 13;
__global__ void __cluster_dims__(4, 1, 1) cluster_kernel(uint32_t* out) {
    extern __shared__ uint8_t dynamic[];
    __shared__ uint32_t cell;
    uint32_t rank = cluster_rank(), own = shared_address(&cell), *o = out + rank * CLUSTER_WORDS;
    cell = 0xFFFF;
    o[0] = rank;
    o[1] = own;
    o[2] = shared_address(dynamic);
    for (uint32_t r = 0; r < 4; ++r) {
        uint32_t mapped, back;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(own), "r"(r));
        asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(back) : "r"(mapped));
        o[3 + r] = mapped;
        o[7 + r] = back;
    }
    cluster_sync();
    uint32_t by_hand = ((rank + 1) % 4) << 24 | (own & 0xFFFFFF);  // the own address has a rank already
    o[12] = by_hand;
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(by_hand), "r"(rank) : "memory");
    cluster_sync();
    o[11] = cell;
}

inline void cluster_addresses() {
    DeviceBuffer<uint32_t> out(4 * CLUSTER_WORDS);
    cluster_kernel<<<4, 1, 256>>>(out.p);
    std::vector<uint32_t> got = out.host();
    for (int r = 0; r < 4; ++r) {
        uint32_t* o = got.data() + r * CLUSTER_WORDS;
        printf("{\"experiment\": \"cluster\", \"rank\": %u, \"static_address\": %u, \"dynamic_address\": %u, "
               "\"mapa\": [%u, %u, %u, %u], \"getctarank\": [%u, %u, %u, %u], \"written_by\": %u, "
               "\"wrote_to\": %u}\n",
               o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], o[12]);
    }
}

// CTA 0 sends one box to the CTAs of `mask`; each of them waits on its own barrier.
__global__ void __cluster_dims__(4, 1, 1)
    multicast_kernel(const __grid_constant__ CUtensorMap map, uint16_t mask, uint32_t* status, uint16_t* out) {
    __shared__ alignas(1024) uint16_t box[64 * 4];
    __shared__ uint64_t bar;
    uint32_t rank = cluster_rank();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) box[i] = 0xEEEE;
    fence_proxy_async();
    if (threadIdx.x == 0) {
        mbarrier_init(&bar, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(&bar, sizeof(box));
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        if (rank == 0) tma_load_2d_multicast(box, &map, 0, 0, &bar, mask);
        status[rank] = mbarrier_wait_bounded(&bar, 0);
    }
    cluster_sync();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[rank * 256 + i] = box[i];
}

inline void multicast() {
    std::vector<uint16_t> global(64 * 4);
    for (size_t i = 0; i < global.size(); ++i) global[i] = static_cast<uint16_t>(i + 1);
    DeviceBuffer<uint16_t> source(global);
    CUtensorMap map = make_map_2d(1, source.p, 64, 4, 128, 64, 4, 3, 0);
    for (uint16_t mask : {0xF, 0x2, 0xA}) {
        DeviceBuffer<uint32_t> status(4);
        DeviceBuffer<uint16_t> out(4 * 256);
        multicast_kernel<<<4, 32>>>(map, mask, status.p, out.p);
        std::vector<uint32_t> done = status.host();
        printf("{\"experiment\": \"multicast\", \"mask\": %u, \"completed\": [%u, %u, %u, %u], ", mask, done[0],
               done[1], done[2], done[3]);
        std::vector<uint16_t> got = out.host();
        std::vector<uint16_t> firsts;
        for (int r = 0; r < 4; ++r) firsts.insert(firsts.end(), got.begin() + r * 256, got.begin() + r * 256 + 72);
        print_hex("first_72_words", firsts);
        printf("}\n");
    }
}
