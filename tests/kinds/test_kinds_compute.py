"""Every kind in the emulator: odd shapes, several timings, once in exact arithmetic; and with what breaks it."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from kinds import CHANGED, KINDS, plan_of, project_of, ptx_of

from kgen.emulation import make_problem, prove, references, run
from kgen.operands import Operand


def odd(plan, tiles: int = 1) -> tuple[int, int, int]:
    """A few rows and columns short of tiles, a ring that wraps, a tail of k that ends inside a scale's block."""
    (tile_m, tile_n), block_k = plan.cluster_tile, plan.cta_tile[2]
    packed = plan.input.packed
    return tiles * tile_m - 63, tile_n - 7, ((plan.stages + 1) * block_k - 5) // packed * packed


def small(plan) -> tuple[int, int, int]:
    packed = plan.input.packed
    return 9, 33, -(-(plan.cta_tile[2] + 3) // packed) * packed


def several(plan) -> tuple[int, int, int]:
    """Four tiles of one k tile."""
    return plan.cluster_tile[0] + 1, plan.cluster_tile[1] + 3, plan.cta_tile[2]


@pytest.mark.parametrize("kind", KINDS)
def test_presets_compute(kind, tmp_path):
    plan = plan_of(kind)
    ptx = ptx_of(kind, tmp_path)
    proof = prove(plan, ptx, only=[odd(plan), *([several(plan)] if plan.scales else [])])
    proof.cases += prove(plan, ptx, only=[small(plan)], seeds=2).cases
    proof.cases += prove(plan, ptx, only=[small(plan)], arithmetic="exact").cases
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]
    assert len(proof.cases) == (10 if plan.scales else 8)


@pytest.mark.parametrize("name", CHANGED)
def test_changed_presets_compute(name, tmp_path):
    plan = plan_of(name)
    proof = prove(plan, ptx_of(name, tmp_path), only=[small(plan)], seeds=2)
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS, *CHANGED])
def test_no_false_alarm_over_ten_timings(name, tmp_path):
    plan = plan_of(name)
    proof = prove(plan, ptx_of(name, tmp_path), only=[odd(plan, 2)], seeds=10)
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


BROKEN = {
    "the scales of A's first block for all": ("mxfp8", "| first << 29", "| 0 << 29"),
    "the scales of B's first block for all": ("mxfp4", "| first << 4;", ";"),
    "scales of the first atom for all": ("nvfp4", "scales_of_a(scales, block / 4)", "scales_of_a(scales, 0)"),
    "B's second atom over its first": ("mxfp8", "scales_of_b(scales, k) + n * ATOM_COLUMNS", "scales_of_b(scales, k)"),
    "scales of the k tile before": (
        "mxfp8",
        "smem.sfb[ring.slot]);\n",
        "smem.sfb[(ring.slot + STAGES - 1) % STAGES]);\n",
    ),
    "columns of scales over the accumulator": ("mxfp4", "+ SCALE_TMEM +", "+ 0 * SCALE_TMEM +"),
    "both issuers copy to the same columns": (
        "nvfp4_two_consumers",
        "+ consumer * SCALE_COLUMNS",
        "+ 0 * SCALE_COLUMNS",
    ),
    "B's scales of the wrong columns": ("mxfp8", "word, tile.column / ATOM_ROWS", "word, tile.row / ATOM_ROWS"),
    "no factor": ("fp8", "x = e.alpha * x", "x = 1 * x"),
    "boxes that overlap": ("mn_major", "BOX_STRIDE = 128 * BLOCK_K >> 4", "BOX_STRIDE = 64 * BLOCK_K >> 4"),
    "k steps of the other layout": (
        "mn_major",
        "tcgen05_descriptor_mn(b + k * BOX_MN)",
        "tcgen05_descriptor_mn(b + k)",
    ),
    "not transposed": ("mn_major", " | 1 << 15", ""),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_kernel_is_noticed(what, tmp_path):
    name, before, after = BROKEN[what]
    plan = plan_of(name)
    (tile_m, tile_n), block_k = plan.cluster_tile, plan.cta_tile[2]
    # Two tiles along M tell rows from columns; elsewhere one will do.
    shape = (tile_m + 65, 8, block_k) if "wrong columns" in what else (65, tile_n, 3 * block_k)
    proof = prove(plan, ptx_of(name, tmp_path, (before, after)), only=[shape])
    assert any(not c.ok for c in proof.cases)


def generated_operand(kind):
    """The class of the generated test, without the card that the rest of it needs."""
    source = project_of(kind)[f"test_gemm_{kind}.py"]
    head = source[source.index("NAME = ") : source.index("TMA_OPERANDS")]
    names = {"np": np, "ml_dtypes": ml_dtypes, "SHAPES": []}
    exec(head + source[source.index("TOO_LARGE = []") : source.index("def library()")], names)
    return names


@pytest.mark.parametrize("kind", KINDS)
def test_the_generated_tests_own_operands_are_what_the_kernel_reads(kind, tmp_path):
    plan, names = plan_of(kind), generated_operand(kind)
    ptx, (m, n, k) = ptx_of(kind, tmp_path), small(plan)
    rng = np.random.default_rng(7)
    for draw in (rng.standard_normal, lambda size: rng.integers(-4, 5, size).astype(float)):
        given = [names["Operand"](o, draw(size)) for o, size in (("a", (m, k)), ("b", (n, k)))]
        a, b = (Operand(x.stored, x.values, getattr(x, "scales", None)) for x in given)
        problem = replace(make_problem(plan, (m, n, k), 0, "normal"), a=a, b=b)
        exact, plain = references(plan, problem)
        d, intact, warnings = run(plan, ptx, problem)
        assert intact and not warnings
        assert np.abs(d.astype(float) - exact).max() <= 2 * np.abs(plain - exact).max()


def test_what_quantising_costs():
    """The stored numbers stay near the given ones: about half a step of the element at the top of its block."""
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((130, 300))
    for kind, limit in (("mxfp8", 0.08), ("mxfp4", 0.35), ("nvfp4", 0.28), ("fp8", 0.07), ("tf32", 0.002)):
        values = generated_operand(kind)["Operand"]("a", numbers).values
        assert np.abs(values - numbers).mean() <= limit * np.abs(numbers).mean(), kind
