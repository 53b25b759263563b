// wgmma: fragments, shared-memory operands in every mode, register operands, and its arithmetic.
//
// An operand is probed by multiplying it with an identity: D then shows the operand itself. Its bytes hold
// their own position (in pieces small enough to be exact in the format), so D says which byte the tensor core
// read for each element, whatever the descriptor meant.
#pragma once

#include "ptx.cuh"

#include <type_traits>

#define REGS64 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define REGS32 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ARG4(c, d, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define ARG16(c, d, i) ARG4(c, d, i), ARG4(c, d, i + 4), ARG4(c, d, i + 8), ARG4(c, d, i + 12)
#define ARG32(c, d) ARG16(c, d, 0), ARG16(c, d, 16)
#define ARG64(c, d) ARG32(c, d), ARG16(c, d, 32), ARG16(c, d, 48)

// D (+)= A * B, both from shared memory: N = 128. TAIL is what follows scale-d for the types.
#define WGMMA_SS(NAME, D_TYPE, D_REG, COUNT, LIST, ARGS, DESC_A, DESC_B, PRED, TYPES, TAIL)                     \
    __device__ __forceinline__ void NAME(D_TYPE (&d)[COUNT], uint64_t a, uint64_t b, int accumulate) {         \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" PRED ", 0;\n"                                         \
                     "wgmma.mma_async.sync.aligned.m64n128" TYPES " " LIST ", %" DESC_A ", %" DESC_B ", p" TAIL \
                     ";\n}"                                                                                     \
                     : ARGS(D_REG, d)                                                                           \
                     : "l"(a), "l"(b), "r"(accumulate));                                                        \
    }
#define WGMMA_SS64(NAME, D_TYPE, D_REG, TYPES, TAIL) \
    WGMMA_SS(NAME, D_TYPE, D_REG, 64, REGS64, ARG64, "64", "65", "66", TYPES, TAIL)
#define WGMMA_SS32(NAME, TYPES, TAIL) WGMMA_SS(NAME, uint32_t, "+r", 32, REGS32, ARG32, "32", "33", "34", TYPES, TAIL)

WGMMA_SS64(wgmma_f16_kk, float, "+f", "k16.f32.f16.f16", ", 1, 1, 0, 0")
WGMMA_SS64(wgmma_f16_mk, float, "+f", "k16.f32.f16.f16", ", 1, 1, 1, 0")
WGMMA_SS64(wgmma_f16_km, float, "+f", "k16.f32.f16.f16", ", 1, 1, 0, 1")
WGMMA_SS64(wgmma_bf16, float, "+f", "k16.f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA_SS64(wgmma_tf32, float, "+f", "k8.f32.tf32.tf32", ", 1, 1")
WGMMA_SS64(wgmma_e4m3, float, "+f", "k32.f32.e4m3.e4m3", ", 1, 1")
WGMMA_SS64(wgmma_e5m2, float, "+f", "k32.f32.e5m2.e5m2", ", 1, 1")
WGMMA_SS64(wgmma_mixed, float, "+f", "k32.f32.e4m3.e5m2", ", 1, 1")
WGMMA_SS64(wgmma_u8, uint32_t, "+r", "k32.s32.u8.u8", "")
WGMMA_SS32(wgmma_f16_f16, "k16.f16.f16.f16", ", 1, 1, 0, 0")
WGMMA_SS32(wgmma_e4m3_f16, "k32.f16.e4m3.e4m3", ", 1, 1")
WGMMA_SS32(wgmma_e5m2_f16, "k32.f16.e5m2.e5m2", ", 1, 1")

// D = A * B with A in registers.
#define WGMMA_RS(NAME, D_TYPE, D_REG, TYPES, TAIL)                                                              \
    __device__ __forceinline__ void NAME(D_TYPE (&d)[64], const uint32_t (&a)[4], uint64_t b) {                 \
        asm volatile("wgmma.mma_async.sync.aligned.m64n128" TYPES " " REGS64 ", {%64, %65, %66, %67}, %68, 0" TAIL ";" \
                     : ARG64(D_REG, d)                                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                     \
    }
WGMMA_RS(wgmma_f16_reg, float, "+f", "k16.f32.f16.f16", ", 1, 1, 0")
WGMMA_RS(wgmma_tf32_reg, float, "+f", "k8.f32.tf32.tf32", ", 1, 1")
WGMMA_RS(wgmma_u8_reg, uint32_t, "+r", "k32.s32.u8.u8", "")

// The compiler must not move a use of the accumulators across the instructions between begin and end.
__device__ __forceinline__ void pin(float& r) { asm volatile("" : "+f"(r)::"memory"); }
__device__ __forceinline__ void pin(uint32_t& r) { asm volatile("" : "+r"(r)::"memory"); }
template <typename T, int COUNT>
__device__ __forceinline__ void wgmma_begin(T (&d)[COUNT]) {
    for (int i = 0; i < COUNT; ++i) pin(d[i]);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <typename T, int COUNT>
__device__ __forceinline__ void wgmma_end(T (&d)[COUNT]) {
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < COUNT; ++i) pin(d[i]);
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t lbo, uint32_t sbo, uint32_t swizzle,
                                               uint32_t base_offset) {
    auto field = [](uint32_t bytes) { return static_cast<uint64_t>((bytes & 0x3FFFF) >> 4); };
    return field(address) | field(lbo) << 16 | field(sbo) << 32 | static_cast<uint64_t>(base_offset) << 49 |
           static_cast<uint64_t>(swizzle) << 62;
}

enum Kind { F16, BF16, TF32, E4M3, E5M2, MIXED, U8, F16_F16, E4M3_F16, E5M2_F16, KINDS };
__host__ __device__ constexpr int element_bytes(int kind) {
    return kind == TF32 ? 4 : (kind == F16 || kind == BF16 || kind == F16_F16) ? 2 : 1;
}
__host__ __device__ constexpr int k_of(int kind) { return 32 / element_bytes(kind); }
__host__ __device__ constexpr bool packed_d(int kind) { return kind >= F16_F16; }

// Small non-negative integers as codes: below 1024 in f16 and f32 words, below 16 in e4m3, below 256 in u8.
template <int KIND>
__device__ uint32_t small_integer(uint32_t v) {
    if (KIND == TF32) return __float_as_uint(static_cast<float>(v));
    if (KIND == U8 || v == 0) return v;
    int e = 31 - __clz(v);
    if (KIND == F16) return static_cast<uint32_t>(e + 15) << 10 | (v << (10 - e) & 0x3FF);
    return static_cast<uint32_t>(e + 7) << 3 | (v << (3 - e) & 7);  // e4m3
}
template <int KIND>
__device__ void store_element(uint8_t* at, uint32_t code) {
    if (element_bytes(KIND) == 4) *reinterpret_cast<uint32_t*>(at) = code;
    if (element_bytes(KIND) == 2) *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(code);
    if (element_bytes(KIND) == 1) *at = static_cast<uint8_t>(code);
}
// K-major without swizzle, core matrices [row / 8][k / 16 bytes]: LBO 128, SBO 256.
__device__ __forceinline__ int plain_offset(int row, int k_byte) {
    return row / 8 * 256 + k_byte / 16 * 128 + row % 8 * 16 + k_byte % 16;
}
__device__ __forceinline__ int d_row(int i) {
    return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * (i / 2 % 2);
}
__device__ __forceinline__ int d_col(int i) { return 8 * (i / 4) + 2 * (threadIdx.x % 4) + i % 2; }

template <int KIND>
__device__ void fill_identity(uint8_t* operand, int rows) {
    constexpr int esz = element_bytes(KIND);
    for (int i = threadIdx.x; i < rows * 32 / esz; i += blockDim.x) {
        int row = i / k_of(KIND), k = i % k_of(KIND);
        store_element<KIND>(operand + plain_offset(row, k * esz), row == k ? small_integer<KIND>(1) : 0);
    }
}

// --- which bytes a descriptor names -------------------------------------------------------------------------

struct Probe {
    int kind, operand, mn_major, swizzle, lbo, sbo, start, base_offset;  // operand: 0 = A, 1 = B
};
constexpr int PROBED = 32768;  // bytes of the probed region
__host__ __device__ constexpr int piece_bits(int kind) { return element_bytes(kind) > 1 ? 10 : 4; }
__host__ __device__ constexpr int pieces(int kind) { return element_bytes(kind) == 1 ? 4 : 2; }

template <int KIND, int OPERAND, int MN_MAJOR>
__global__ void probe_kernel(Probe p, float* out, uint32_t* region_address) {
    extern __shared__ uint8_t raw[];
    constexpr int esz = element_bytes(KIND), bits = piece_bits(KIND);
    uint8_t* identity = aligned_1024(raw);
    uint8_t* region = identity + 8192;
    fill_identity<KIND>(identity, OPERAND ? 64 : 128);
    if (threadIdx.x == 0) *region_address = shared_address(region);
    uint64_t plain = descriptor(shared_address(identity), 128, 256, 0, 0);
    uint64_t probed = descriptor(shared_address(region) + p.start, p.lbo, p.sbo, p.swizzle, p.base_offset);
    for (int piece = 0; piece < pieces(KIND); ++piece) {
        for (int i = threadIdx.x; i < PROBED / esz; i += blockDim.x)
            store_element<KIND>(region + i * esz, small_integer<KIND>(i >> (bits * piece) & ((1 << bits) - 1)));
        fence_proxy_async();
        __syncthreads();
        float d[64] = {};
        uint64_t a = OPERAND ? plain : probed, b = OPERAND ? probed : plain;
        wgmma_begin(d);
        if constexpr (KIND == F16 && !MN_MAJOR) wgmma_f16_kk(d, a, b, 0);
        if constexpr (KIND == F16 && MN_MAJOR && !OPERAND) wgmma_f16_mk(d, a, b, 0);
        if constexpr (KIND == F16 && MN_MAJOR && OPERAND) wgmma_f16_km(d, a, b, 0);
        if constexpr (KIND == TF32) wgmma_tf32(d, a, b, 0);
        if constexpr (KIND == E4M3) wgmma_e4m3(d, a, b, 0);
        wgmma_end(d);
        for (int i = 0; i < 64; ++i) out[(piece * 64 + d_row(i)) * 128 + d_col(i)] = d[i];
        __syncthreads();
    }
}

inline void run_probe(const Probe& p) {
    DeviceBuffer<float> out(4 * 64 * 128);
    DeviceBuffer<uint32_t> address(1);
    void (*kernel)(Probe, float*, uint32_t*) = nullptr;
    if (p.kind == F16 && !p.mn_major) kernel = p.operand ? probe_kernel<F16, 1, 0> : probe_kernel<F16, 0, 0>;
    if (p.kind == F16 && p.mn_major) kernel = p.operand ? probe_kernel<F16, 1, 1> : probe_kernel<F16, 0, 1>;
    if (p.kind == TF32) kernel = p.operand ? probe_kernel<TF32, 1, 0> : probe_kernel<TF32, 0, 0>;
    if (p.kind == E4M3) kernel = p.operand ? probe_kernel<E4M3, 1, 0> : probe_kernel<E4M3, 0, 0>;
    constexpr int shared = 1024 + 8192 + PROBED;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<1, 128, shared>>>(p, out.p, address.p);
    std::vector<float> d = out.host();
    int rows = p.operand ? 128 : 64, ks = k_of(p.kind);
    std::vector<uint16_t> offsets(rows * ks);
    for (int r = 0; r < rows; ++r)
        for (int k = 0; k < ks; ++k) {
            uint32_t element = 0;
            for (int piece = 0; piece < pieces(p.kind); ++piece) {
                int m = p.operand ? k : r, n = p.operand ? r : k;
                element |= static_cast<uint32_t>(d[(piece * 64 + m) * 128 + n]) << (piece_bits(p.kind) * piece);
            }
            offsets[r * ks + k] = static_cast<uint16_t>(element * element_bytes(p.kind));
        }
    const char* names[] = {"f16", "bf16", "tf32", "e4m3"};
    printf("{\"experiment\": \"wgmma_descriptor\", \"kind\": \"%s\", \"operand\": \"%c\", \"major\": \"%s\", "
           "\"swizzle\": %d, \"lbo\": %d, \"sbo\": %d, \"start\": %d, \"base_offset\": %d, \"region_address\": %u, ",
           names[p.kind], p.operand ? 'B' : 'A', p.mn_major ? "MN" : "K", p.swizzle, p.lbo, p.sbo, p.start,
           p.base_offset, address.host()[0]);
    print_hex("offsets", offsets);
    printf("}\n");
}

inline void wgmma_descriptors() {
    const int span[4] = {16, 128, 64, 32};  // by swizzle code
    for (int kind : {F16, TF32, E4M3})
        for (int operand : {0, 1})
            for (int code = 0; code < 4; ++code)
                for (int start : {0, 32, 4096 + 64}) {
                    if (start % span[code] && !code) continue;
                    if (start % 128 >= span[code] && code) continue;  // would leave the swizzle row
                    int lbo = code ? 16 : 128, sbo = code ? 8 * span[code] : 256;
                    run_probe({kind, operand, 0, code, lbo, sbo, start, 0});
                }
    for (int operand : {0, 1})
        for (int code = 0; code < 4; ++code) {
            int rows = operand ? 128 : 64, per = span[code] / 2, atoms = rows / per;
            // Atoms along MN one after another, and K blocks first: LBO and SBO exchange their sizes.
            int inner = 8 * span[code];
            run_probe({F16, operand, 1, code, inner, inner * atoms, 0, 0});
            run_probe({F16, operand, 1, code, inner * 2, inner, 2048, 0});
        }
}

// Patterns that do not start at a multiple of 1024, 512 or 256 bytes, with every base offset.
inline void wgmma_base_offset() {
    const int span[4] = {16, 128, 64, 32};
    for (int code = 1; code < 4; ++code)
        for (int start : {0, 128, 384, 512, 896})
            for (int base = 0; base < 8; ++base) run_probe({F16, 0, 0, code, 16, 8 * span[code], start, base});
}

// --- fragments ------------------------------------------------------------------------------------------------

// Raw accumulator registers when D[m, n] is m (pass 0) or n (pass 1).
template <int KIND>
__global__ void accumulator_kernel(int pass, uint32_t* out) {
    extern __shared__ uint8_t raw[];
    constexpr int esz = element_bytes(KIND);
    uint8_t *a = aligned_1024(raw), *b = a + 4096;
    // u8 and 16-bit types hold any m or n below 128 exactly.
    constexpr int code = KIND == F16_F16 ? F16 : KIND;
    for (int i = threadIdx.x; i < 192 * k_of(KIND); i += blockDim.x) {
        int row = i / k_of(KIND), k = i % k_of(KIND);
        bool is_b = row >= 64;
        int r = is_b ? row - 64 : row;
        uint32_t value = k ? 0 : is_b == static_cast<bool>(pass) ? r : 1;
        store_element<KIND>((is_b ? b : a) + plain_offset(r, k * esz), small_integer<code>(value));
    }
    fence_proxy_async();
    __syncthreads();
    uint64_t da = descriptor(shared_address(a), 128, 256, 0, 0), db = descriptor(shared_address(b), 128, 256, 0, 0);
    constexpr int count = packed_d(KIND) ? 32 : 64;
    if constexpr (KIND == F16) {
        float d[64] = {};
        wgmma_begin(d);
        wgmma_f16_kk(d, da, db, 0);
        wgmma_end(d);
        for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = static_cast<uint32_t>(d[i]);
    } else {
        uint32_t d[count] = {};
        wgmma_begin(d);
        if constexpr (KIND == U8) wgmma_u8(d, da, db, 0);
        if constexpr (KIND == F16_F16) wgmma_f16_f16(d, da, db, 0);
        wgmma_end(d);
        for (int i = 0; i < count; ++i) out[threadIdx.x * count + i] = d[i];
    }
}

template <int KIND>
void run_accumulator(const char* name) {
    for (int pass : {0, 1}) {
        DeviceBuffer<uint32_t> out(128 * (packed_d(KIND) ? 32 : 64));
        accumulator_kernel<KIND><<<1, 128, 16384>>>(pass, out.p);
        printf("{\"experiment\": \"wgmma_accumulator\", \"d\": \"%s\", \"shows\": \"%s\", ", name,
               pass ? "col" : "row");
        print_hex("registers", out.host());
        printf("}\n");
    }
}

// D shows, for each (m, k) of A, which thread, register and part of it was used: an id in pieces.
template <int KIND>
__global__ void register_operand_kernel(int piece, uint32_t* out) {
    extern __shared__ uint8_t raw[];
    uint8_t* b = aligned_1024(raw);
    fill_identity<KIND>(b, 128);
    fence_proxy_async();
    __syncthreads();
    constexpr int per = 4 / element_bytes(KIND);
    uint32_t a[4] = {};
    for (int i = 0; i < 4; ++i)
        for (int part = 0; part < per; ++part) {
            uint32_t id = (threadIdx.x * 4 + i) * per + part;
            uint32_t shown = KIND == U8 ? id >> (7 * piece) & 127 : id;
            a[i] |= small_integer<KIND>(shown) << (32 / per * part % 32);
        }
    uint64_t db = descriptor(shared_address(b), 128, 256, 0, 0);
    std::conditional_t<KIND == U8, uint32_t, float> d[64] = {};
    for (auto& r : a) pin(r);
    wgmma_begin(d);
    if constexpr (KIND == F16) wgmma_f16_reg(d, a, db);
    if constexpr (KIND == TF32) wgmma_tf32_reg(d, a, db);
    if constexpr (KIND == U8) wgmma_u8_reg(d, a, db);
    wgmma_end(d);
    for (int i = 0; i < 64; ++i)
        if (d_col(i) < k_of(KIND)) out[d_row(i) * k_of(KIND) + d_col(i)] = static_cast<uint32_t>(d[i]);
}

template <int KIND>
void run_register_operand(const char* name) {
    std::vector<uint16_t> ids(64 * k_of(KIND));
    for (int piece = 0; piece < (KIND == U8 ? 2 : 1); ++piece) {
        DeviceBuffer<uint32_t> out(64 * k_of(KIND));
        register_operand_kernel<KIND><<<1, 128, 16384>>>(piece, out.p);
        std::vector<uint32_t> got = out.host();
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(ids[i] | got[i] << (7 * piece));
    }
    printf("{\"experiment\": \"wgmma_register_operand\", \"kind\": \"%s\", ", name);
    print_hex("ids", ids);
    printf("}\n");
}

inline void wgmma_fragments() {
    run_accumulator<F16>("f32");
    run_accumulator<U8>("s32");
    run_accumulator<F16_F16>("f16");
    run_register_operand<F16>("f16");
    run_register_operand<TF32>("tf32");
    run_register_operand<U8>("u8");
}

// --- arithmetic -----------------------------------------------------------------------------------------------

// One instruction on codes the driver made: A [64][K], B [128][K], C and D [64][128].
template <int KIND>
__global__ void numerics_kernel(const uint8_t* a, const uint8_t* b, const uint32_t* c, uint32_t* out) {
    extern __shared__ uint8_t raw[];
    uint8_t *sa = aligned_1024(raw), *sb = sa + 4096;
    for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x) sa[plain_offset(i / 32, i % 32)] = a[i];
    for (int i = threadIdx.x; i < 128 * 32; i += blockDim.x) sb[plain_offset(i / 32, i % 32)] = b[i];
    fence_proxy_async();
    __syncthreads();
    uint64_t da = descriptor(shared_address(sa), 128, 256, 0, 0), db = descriptor(shared_address(sb), 128, 256, 0, 0);
    auto place = [](int i) { return d_row(i) * 128 + d_col(i); };
    if constexpr (packed_d(KIND)) {
        uint32_t d[32];
        for (int i = 0; i < 32; ++i) d[i] = (c[place(2 * i)] & 0xFFFF) | c[place(2 * i + 1)] << 16;
        wgmma_begin(d);
        if constexpr (KIND == F16_F16) wgmma_f16_f16(d, da, db, 1);
        if constexpr (KIND == E4M3_F16) wgmma_e4m3_f16(d, da, db, 1);
        if constexpr (KIND == E5M2_F16) wgmma_e5m2_f16(d, da, db, 1);
        wgmma_end(d);
        for (int i = 0; i < 32; ++i) {
            out[place(2 * i)] = d[i] & 0xFFFF;
            out[place(2 * i + 1)] = d[i] >> 16;
        }
    } else {
        float d[64];
        for (int i = 0; i < 64; ++i) d[i] = __uint_as_float(c[place(i)]);
        wgmma_begin(d);
        if constexpr (KIND == F16) wgmma_f16_kk(d, da, db, 1);
        if constexpr (KIND == BF16) wgmma_bf16(d, da, db, 1);
        if constexpr (KIND == TF32) wgmma_tf32(d, da, db, 1);
        if constexpr (KIND == E4M3) wgmma_e4m3(d, da, db, 1);
        if constexpr (KIND == E5M2) wgmma_e5m2(d, da, db, 1);
        if constexpr (KIND == MIXED) wgmma_mixed(d, da, db, 1);
        wgmma_end(d);
        for (int i = 0; i < 64; ++i) out[place(i)] = __float_as_uint(d[i]);
    }
}
