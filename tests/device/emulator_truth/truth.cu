// Measures on a Hopper card what the emulator assumes about it. One experiment per process:
//
//   nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -o truth truth.cu
//   ./truth NAME            one JSON object a line; see `experiments` below for the names
//   ./truth numerics KIND INPUT OUTPUT
//
// A bad descriptor may kill the context, so `measure.py` runs every experiment on its own, with a time limit.
// Device waits are bounded; `alarm` ends the process if the device hangs all the same.

#include "numerics.cuh"
#include "tma_edge.cuh"
#include "warp.cuh"
#include "wgmma.cuh"

#include <csignal>
#include <cstring>
#include <unistd.h>

static void watchdog(int) {
    const char text[] = "{\"error\": \"watchdog: no answer from the device\"}\n";
    (void)!write(1, text, sizeof(text) - 1);
    _Exit(4);
}

int main(int argc, char** argv) {
    signal(SIGALRM, watchdog);
    alarm(15);
    struct {
        const char* name;
        void (*run)();
    } experiments[] = {
        {"tma_swizzle", tma_swizzle},
        {"tma_oob", tma_oob},
        {"tma_unaligned_start", tma_unaligned_start},
        {"tma_types", tma_types},
        {"tma_store_inside", [] { tma_store(0, 0); }},
        {"tma_store_clipped", [] { tma_store(24, 6); }},
        {"tma_store_outside", [] { tma_store(40, 10); }},
        {"tma_store_negative", [] { tma_store(-8, -2); }},
        {"tma_store_negative_c0", [] { tma_store(-8, 0); }},
        {"tma_store_negative_c1", [] { tma_store(0, -2); }},
        {"tma_edge_store", tma_edge_store},
        {"tma_edge_add", tma_edge_add},
        {"tma_edge_load", tma_edge_load},
        {"tma_unaligned_store", tma_unaligned_store},
        {"map_rules", map_rules},
        {"mbarrier_parity", mbarrier_parity},
        {"matrix_moves", matrix_moves},
        {"elect", elect},
        {"cluster_addresses", cluster_addresses},
        {"multicast", multicast},
        {"wgmma_fragments", wgmma_fragments},
        {"wgmma_descriptors", wgmma_descriptors},
        {"wgmma_base_offset", wgmma_base_offset},
    };
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (auto& e : experiments) puts(e.name);
        return 0;
    }
    if (argc == 5 && !strcmp(argv[1], "numerics")) {
        numerics(atoi(argv[2]), argv[3], argv[4]);
        return 0;
    }
    for (auto& e : experiments)
        if (argc == 2 && !strcmp(argv[1], e.name)) {
            e.run();
            return 0;
        }
    fprintf(stderr, "usage: truth --list | NAME | numerics KIND INPUT OUTPUT\n");
    return 2;
}
