"""Kernels for sm_100a with one mistake: the emulator or the protocol check finds it.

A fixed sample here; run.py runs all and prints the tables of docs/mutation.md.
"""

import pytest
from engine import emulated, fate, proven
from from_kernel import program_of_source
from run import ALL, SPECIAL, STEPS, alive, everything, plans, tables
from survivors import reason
from table import TABLE, mutants
from variants import named_plans

from kgen.protocol import check_plan, tiles_per_cta
from kgen.protocol.explore import check
from kgen.render import render_kernel

PLANS = named_plans("sm_100a") | {p.name: p for p in plans(SPECIAL)}
SAMPLE = [  # kernel, row of the table, what the changed line contains, how it ends
    ("gemm_step4", "count", "smem.full[slot], 1);", "1 + 1);"),
    ("gemm_step7", "count", "acc_empty", "- 1);"),
    ("gemm_step4", "bytes", "smem.full", "+ 16);"),
    ("gemm_step7", "bytes", "smem.full", "- 16);"),
    ("gemm_step4", "no ^ 1", "smem.empty", "phase);"),
    ("gemm_step7", "^ 1", "acc_full", "phase ^ 1);"),
    ("gemm_step7", "first phase", "phase = 0", "phase = 1;"),
    ("gemm_step8", "mask", "0b11", "0b01;"),
    ("gemm_step8", "whom a load signals", "%2, 0", "%2, 1;"),
    ("gemm_step4", "proxy", "fence_proxy_async", "nothing"),
    ("gemm_step7", "before", "tcgen05_fence_before", "nothing"),
    ("gemm_step7", "wait", "smem.full", "nothing"),
    ("gemm_step7", "wait", "acc_empty", "nothing"),
    ("gemm_step4", "wait for a load", "wait_load", "nothing"),
    ("gemm_step4", "store groups", "<0>", "nothing"),
    ("gemm_step7", "announcement", "expect_tx", "nothing"),
    ("gemm_step7", "release", "acc_empty", "nothing"),
    ("gemm_step7", "commit", "acc_full", "nothing"),
    ("gemm_step4", "alloc", "alloc", "nothing"),
    ("gemm_step7", "dealloc", "dealloc", "nothing"),
    ("gemm_step4", "__syncthreads", "sync", "nothing"),
    ("gemm_step4", "stride", "1024", "512 >> 4;"),
    ("gemm_step4", "swizzle", "2ull", "4ull << 61"),
    ("gemm_step4", "N", "BLOCK_N / 8", "- 2) << 17"),
    ("gemm_step4", "step", "MMA_K", "2 * MMA_K"),
    ("gemm_step7", "__syncwarp", "__syncwarp", "nothing"),
    ("gemm_step8", "cluster_sync", "cluster_sync", "nothing"),
    ("gemm_clc", "proxy", "fence_proxy_async", "nothing"),
    ("gemm_mxfp8", "copies", "ATOMS_K", "ATOMS_K - 1; ++k"),
    ("gemm_mxfp4", "ids", "first << 29", "| 2u << 4"),
    ("gemm_clc", "readers", "CLC_EMPTY", "- 1;"),
    ("gemm_clc", "expected bytes", "clc_full", "nothing"),
    ("gemm_nvfp4", "copy", "scales_of_a", "nothing"),
    ("gemm_nvfp4", "column of B", "ATOMS_K", "(ATOMS_K + k)"),
]


def found(kernel, row, contains, ends):
    rows = mutants(render_kernel(PLANS[kernel]))
    chosen = [m for m in rows if m.name.startswith(row + ", line") and contains in m.name and m.name.endswith(ends)]
    assert chosen, (kernel, row, contains)
    return chosen[0]


@pytest.mark.parametrize(("kernel", "row", "contains", "ends"), SAMPLE)
def test_a_sample_is_caught(kernel, row, contains, ends):
    mutant = found(kernel, row, contains, ends)
    assert emulated(PLANS[kernel], mutant.source, seeds=1) or proven(PLANS[kernel], mutant.source) not in ("", "-")


def test_every_row_of_the_table_has_a_place():
    everywhere = [m for plan in plans(ALL) for m in mutants(render_kernel(plan))]
    for group, rows in TABLE.items():
        for name, *_ in rows:
            assert any(m.group == group and m.name.startswith(name + ", line") for m in everywhere), name


@pytest.mark.parametrize("kernel", [*(f"gemm_step{step}" for step in STEPS), *(f"gemm_{name}" for name in SPECIAL)])
def test_a_protocol_read_back_from_a_kernel_is_that_of_the_plan(kernel):
    """The same number of states: no operation is lost on the way through the source."""
    plan = PLANS[kernel]
    source = render_kernel(plan)
    assert program_of_source(plan, source) is None
    outcome = check(program_of_source(plan, source, afresh=True), tiles_per_cta(plan))
    assert outcome.proven and outcome.states == check_plan(plan).states


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("preset", ALL)
def test_every_mutant_is_caught_or_known_to_survive(preset):
    (plan,) = plans([preset])
    fates = {key: fate(*it) for key, it in everything([preset]).items()}
    print(tables(fates))
    assert all(f.compiles for f in fates.values())
    source = render_kernel(plan)
    assert not [f.name for f in fates.values() if alive(f) and reason(plan.name, f.name, source) is None]


@pytest.mark.parametrize("kernel", ["gemm_step8", "gemm_clc", "gemm_nvfp4", "gemm_mxfp8"])
def test_a_producer_that_leaves_before_its_stages_return(kernel):
    """The emulator does not see it: there a thread's commits arrive in turn, so that none outlives a CTA."""
    source = render_kernel(PLANS[kernel])
    at = source.index("mbarrier_wait(smem.empty", source.index("// no commit may signal"))
    source = source[:at] + source[source.index(";", at) :]
    assert proven(PLANS[kernel], source) == "remote signal to an exited CTA"


def test_without_both_fences_of_the_issuer_the_emulator_warns():
    """Each is harmless alone (survivors.py): the first MMA follows both waits."""
    plan = PLANS["gemm_step7"]
    source = render_kernel(plan)
    for wait in ("acc.phase ^ 1);", "smem.full[ring.slot], ring.phase);"):
        at = source.index("tcgen05_fence_after();", source.index(wait, source.index("// Issuers")))
        source = source[:at] + source[at + len("tcgen05_fence_after();") :]
    assert "tmem-missing-fence-after" in emulated(plan, source, seeds=1)
