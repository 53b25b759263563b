"""The programs of sm_100a say what its templates say, role by role: barriers, counts, bytes, masks, fences, order."""

import pytest
from extraction_sm100a import Kernel, who_of
from rungs import rung_plans
from variants import BLACKWELL, named_plans, variant_project
from words_sm100a import program_words

from kgen.protocol import program_of, tiles_per_cta
from kgen.render import render_kernel

PLANS = named_plans("sm_100a") | {p.name: p for p in rung_plans()}


def words_of(plan, source=None) -> dict[str, list[tuple]]:
    """Per role of the program, the words of the kernel."""
    staged = any(t.operand == "d" for t in plan.tensor_maps)
    kernel = Kernel(source or render_kernel(plan), staged)
    return {role.name: kernel.words(who_of(role)) for role in program_of(plan).roles}


@pytest.mark.parametrize("name", PLANS)
def test_every_call_is_in_the_program_and_in_this_order(name):
    plan = PLANS[name]
    program, kernel = program_of(plan), words_of(plan)
    for role in program.roles:
        assert program_words(program, role, plan) == kernel[role.name], role.name


@pytest.mark.parametrize("name", PLANS)
def test_every_warp_of_the_launch_has_a_role_in_every_cta(name):
    plan = PLANS[name]
    for rank in range(plan.cta_group):
        warps = sum(r.warps for r in program_of(plan).roles if r.ctas is None or rank in r.ctas)
        assert 32 * warps == plan.launch.threads


def test_the_launcher_refuses_what_the_checker_leaves_out():
    for plan in PLANS.values():
        assert program_of(plan).least == {"k_tiles": 1}
        assert tiles_per_cta(plan) == {"persistent": (0, 1, 2, 3), "clc": (1, 2, 3)}.get(plan.schedule, (1,))
    for name in BLACKWELL:
        assert "args.k < 1) return cudaErrorInvalidValue" in variant_project(name)[f"{name}.cu"]


CHANGES = {  # what a template might say instead, and the kernel that it changes
    "a wait's parity": ("gemm_step9", "smem.empty[ring.slot], ring.phase ^ 1)", "smem.empty[ring.slot], ring.phase)"),
    "an arrival count": ("gemm_step9", "smem.acc_full[slot], 1);", "smem.acc_full[slot], 2);"),
    "a count's constant": ("gemm_step9", "EMPTY_ARRIVALS = NUM_CONSUMERS;", "EMPTY_ARRIVALS = 1;"),
    "the bytes of a stage": ("gemm_step8", "STAGE_BYTES = CLUSTER_SIZE * ", "STAGE_BYTES = "),
    "the box of a copy": ("gemm_step8", "args.ldb, B_SLICE, BLOCK_K)", "args.ldb, BLOCK_N, BLOCK_K)"),
    "who announces": ("gemm_step8", "if (cluster_rank() == 0) mbarrier_arrive", "mbarrier_arrive"),
    "whom a copy signals": ("gemm_step8", "first, %2, 0;", "first, %2, 1;"),
    "a commit's mask": ("gemm_step8", "PAIR = 0b11;", "PAIR = 0b01;"),
    "the cta_group of a commit": ("gemm_step8", "tcgen05.commit.cta_group::2", "tcgen05.commit.cta_group::1"),
    "what a commit signals": ("gemm_step7", "tcgen05_commit(smem.empty[", "tcgen05_commit(smem.full["),
    "a missing commit": ("gemm_step7", "tcgen05_commit(smem.acc_full[slot]);", ""),
    "commits in another order": (
        "gemm_step6", "tcgen05_commit(smem.empty[ring.slot]);\n        ring.advance();",
        "ring.advance();\n        tcgen05_commit(smem.empty[ring.slot]);",
    ),
    "who is released": ("gemm_step9", "mbarrier_arrive_cluster(acc_empty, 0)", "mbarrier_arrive_cluster(acc_empty, 1)"),
    "a late release": ("gemm_step7", "if (c + CHUNK == BLOCK_N) release(acc_empty);", ""),
    "the slot of an accumulator": ("gemm_step9", "consumer * ACCUMULATORS + acc.slot", "acc.slot"),
    "the ring that is multiplied": ("gemm_step6", "smem.b[ring.slot], k0 > 0)", "smem.b[fill.slot], k0 > 0)"),
    "a missing advance": ("gemm_step7", "acc.advance();", ""),
    "a fence of tensor memory": ("gemm_step7", "  tcgen05_fence_before();\n  __syncwarp();", "  __syncwarp();"),
    "the fence after a wait": ("gemm_step4", "ring.phase);\n      tcgen05_fence_after();", "ring.phase);"),
    "a __syncwarp": ("gemm_step7", "tcgen05_fence_before();\n  __syncwarp();", "tcgen05_fence_before();"),
    "a proxy fence": ("gemm_step2", "    fence_proxy_async();", "    "),
    "the fence of the barriers": ("gemm_step9", "    fence_mbarrier_init();", "    "),
    "a __syncthreads": ("gemm_step6", "__syncthreads();  // every warp has read", "// every warp has read"),
    "a missing cluster barrier": ("gemm_step8", "cluster_sync();  // both CTAs run", "// both CTAs run"),
    "no relinquish": ("gemm_step7", "tcgen05_relinquish();  // others", "// others"),
    "other columns": ("gemm_step7", "tcgen05_dealloc(tmem, TMEM_COLUMNS)", "tcgen05_dealloc(tmem, BLOCK_N / 2)"),
    "who frees": ("gemm_step7", "if (warp == MMA_WARP) {\n    tcgen05_fence_after", "{\n    tcgen05_fence_after"),
    "a store wait": ("gemm_step7", "bulk_wait_read<STAGING - 1>", "bulk_wait_read<0>"),
    "a missing drain": ("gemm_step7", "if (threadIdx.x % 32 == 0) bulk_wait_read<0>();", ""),
    "the drain of the ring": ("gemm_step8", "for (int slot = 0; slot < STAGES; ++slot) {  // no commit",
                              "for (int slot = 0; slot < ACC_SLOTS; ++slot) {  // no commit"),
    "a wait for the load": ("gemm_step3", "    tcgen05_wait_load();", "    "),
    "another accumulator": ("gemm_step7", "multiply(tmem + slot * BLOCK_N,", "multiply(tmem,"),
    "who counts as a reader": ("gemm_clc", "+ NUM_CONSUMERS + 1;  // who reads", "+ NUM_CONSUMERS;  // who reads"),
    "whom a reader tells": ("gemm_clc", "smem.clc_empty[clc.slot], 0)", "smem.clc_empty[clc.slot], 1)"),
    "a reader's fence": ("gemm_clc", "  fence_proxy_async();  // the answer", "  // the answer"),
    "whom an answer reaches": ("gemm_clc", '".multicast::cluster::all.b128', '".b128'),
    "who announces an answer": ("gemm_clc", "rank < CLUSTER_SIZE; ++rank)  // the answer", "rank < 1; ++rank)  //"),
    "the bytes of an answer": ("gemm_clc", "CLC_BYTES = 16;", "CLC_BYTES = 8;"),
    "the slot of a request": ("clc_alone", "clc_try_cancel(smem.clc[clc.slot]", "clc_try_cancel(smem.clc[0]"),
    "the cursor of the other lanes": ("gemm_clc", "    clc.advance();\n  return __shfl", "    ;\n  return __shfl"),
    "the answer for a whole warp": ("gemm_clc", "return __shfl_sync(0xffffffff, index, 0)", "return index"),
    "a missing answer": ("gemm_clc", "index >= 0; index = next_tile(smem, clc)) {", "index < tiles_m; index += 1) {"),
    "the stage of scales": ("gemm_mxfp8", "ATOM_BYTES, smem.sfb[ring.slot]);", "ATOM_BYTES, smem.sfb[acc.slot]);"),
    "the bytes of scales": ("gemm_nvfp4", "SCALE_BYTES = SFA_BYTES + SFB_BYTES;", "SCALE_BYTES = SFA_BYTES;"),
    "the cta_group of a copy": ("gemm_mxfp8", "tcgen05.cp.cta_group::2", "tcgen05.cp.cta_group::1"),
    "scales of all consumers": ("gemm_mxfp4", " + consumer * SCALE_COLUMNS;", ";"),
    "a box of an operand": ("gemm_mn_major", "i < B_SLICE; i += BOX_MN", "i < BLOCK_N; i += BOX_MN"),
    "the bytes of an element": ("gemm_tf32", "using Input = float;", "using Input = __nv_bfloat16;"),
    "what is counted is seen": ("gemm_split_k", "    __threadfence();  // what was shared", "    // what was shared"),
    "a release where sums are read": (
        "gemm_split_k", "    if (c + CHUNK == BLOCK_N) release(acc_empty);", "    if (c == 0) release(acc_empty);",
    ),
    "a refill": ("gemm_step5", "load_k_tile(smem, fill.slot, map_a, map_b, tile, refill)",
                 "load_k_tile(smem, ring.slot, map_a, map_b, tile, refill)"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_template_that_drifts_is_noticed(what):
    name, before, after = CHANGES[what]
    plan = PLANS[name]
    source = render_kernel(plan)
    assert before in source
    try:
        drifted = words_of(plan, source.replace(before, after))
    except (AssertionError, KeyError, ValueError):  # it says what no program could
        drifted = None
    assert drifted != words_of(plan)
