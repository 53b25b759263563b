"""Projects proven without a card: presets and variants in the emulator, through the command line and directly."""

import json

import pytest
from variants import BLACKWELL, HOPPER, spec_text, variant_plan, variant_project

from kgen.build import compile_ptx
from kgen.emulation import cases, make_problem, prove, references, run, shapes
from kgen.errors import BuildError
from kgen.plan import make_plan
from kgen.presets import presets
from kgen.proving import Case
from kgen.render import render_project
from kgen.spec.base import parse_spec

PRESETS = presets()


def ptx_of(files: dict[str, str], directory, arch) -> str:
    for path, text in files.items():
        (directory / path).write_text(text)
    return compile_ptx(directory, arch).artifact.read_text()


def small(plan) -> list:
    """Two of the plan's shapes: tails with a ring that wraps, and the smallest."""
    chosen = shapes(plan)
    return [chosen[3], chosen[1]]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.reference)
def test_preset(preset, tmp_path):
    plan = make_plan(parse_spec(preset.text).spec)
    proof = prove(plan, ptx_of(render_project(plan, preset.text), tmp_path, plan.arch), only=small(plan), seeds=2)
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]
    assert len(proof.cases) == 8


@pytest.mark.parametrize("name", HOPPER)
def test_variant(name, tmp_path):
    plan = variant_plan(name)
    proof = prove(plan, ptx_of(variant_project(name), tmp_path, plan.arch), only=small(plan)[:1])
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


def narrow(plan) -> list:
    """Below one tile with a ring that wraps; several tiles per CTA, where there may be several, in one column."""
    (tile_m, tile_n), k = plan.cluster_tile, plan.cta_tile[2]
    tiles = 1 if plan.one_tile else 5 // plan.launch.cluster_size + 1
    n, few = (tile_n - 6, 10) if plan.pairs else (tile_n - 5, 9)
    return [(tile_m - 3, n, (plan.stages + 1) * k - 5), ((tiles - 1) * tile_m + 7, few, k + 1)]


@pytest.mark.parametrize("name", BLACKWELL)
def test_blackwell_variant(name, tmp_path):
    plan = variant_plan(name)
    ptx = ptx_of(variant_project(name), tmp_path, plan.arch)
    kinds = ("normal" if plan.finish else "integers",)  # arguments of an epilogue are no integers
    proof = prove(plan, ptx, only=narrow(plan), kinds=kinds)
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.reference)
def test_no_false_alarm_over_twenty_timings(preset, tmp_path):
    """The shape that wraps the rings most and the one with most tiles per CTA; once in exact arithmetic."""
    plan = make_plan(parse_spec(preset.text).spec)
    ptx = ptx_of(render_project(plan, preset.text), tmp_path, plan.arch)
    wrapping = shapes(plan)[-2:]
    proof = prove(plan, ptx, only=wrapping, seeds=20)
    proof.cases += prove(plan, ptx, only=wrapping, arithmetic="exact").cases
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


def broken_by(name: str, directory, before: str, after: str, laps: int = 0) -> Case | None:
    """The first case that a changed .cu of a variant fails: rings that wrap, then several tiles per CTA, two timings;
    or one tile over `laps` of the ring."""
    files = variant_project(name)
    assert before in files[f"{name}.cu"], f"{before!r} is not in {name}.cu"
    files[f"{name}.cu"] = files[f"{name}.cu"].replace(before, after, 1)
    plan = variant_plan(name)
    ptx = ptx_of(files, directory, plan.arch)
    deep = [(*plan.cluster_tile, laps * plan.stages * plan.cta_tile[2])]
    found = cases(plan, ptx, only=deep if laps else shapes(plan)[4:6], seeds=2)
    return next((c for c in found if isinstance(c, Case) and not c.ok), None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mbarrier_init(smem.empty[stage], EMPTY_ARRIVALS)", "mbarrier_init(smem.empty[stage], EMPTY_ARRIVALS + 1)"),
        ("ring.phase ^ 1)", "ring.phase)"),
        ("smem.full[ring.stage], STAGE_BYTES)", "smem.full[ring.stage], STAGE_BYTES - 16)"),
        ("wgmma_wait<1>();", "wgmma_wait<2>();"),
        ("k0 > 0);", "true);"),
        ("bulk_wait_read<STAGING - 1>", "bulk_wait_read<STAGING>"),
        ("tile.column + slice, ALL_CTAS)", "tile.column + slice, ALL_CTAS & 1)"),
    ],
)
def test_a_broken_kernel_is_caught(before, after, tmp_path):
    assert broken_by("fp16", tmp_path, before, after) is not None


def test_one_arrival_too_few_is_caught_within_twelve_laps(tmp_path):
    """Every lap of the ring is released one arrival earlier than the last, until a phase ends that nobody waited for
    (and later a stage is overwritten under a reader). `kgen check` needs no run to see it."""
    init = "mbarrier_init(smem.empty[stage], EMPTY_ARRIVALS"
    caught = broken_by("fp16", tmp_path, init + ")", init + " - 1)", laps=12)
    assert caught is not None and "mbarrier-can-alias" in caught.note


def test_a_dropped_fence_does_not_even_compile(tmp_path):
    """The wrapper would be left without a caller, and warnings are errors."""
    with pytest.raises(BuildError, match="fence_proxy_async"):
        broken_by("fp16", tmp_path, "  fence_proxy_async();  // by every lane", "  // by every lane")


def test_exact_arithmetic_is_the_truncating_accumulators(tmp_path):
    plan = variant_plan("fp32_out")
    ptx = ptx_of(variant_project("fp32_out"), tmp_path, plan.arch)
    problem = make_problem(plan, (65, 130, 129), 3, "normal")
    d, intact, warnings = run(plan, ptx, problem, arithmetic="exact")
    exact, plain = references(plan, problem)
    assert intact and not warnings
    # The tensor core also truncates the products of one instruction, so it errs a little more than truncated sums.
    assert 0 < abs(d - exact).max() <= 2 * abs(plain - exact).max()


def test_the_same_seed_gives_the_same_run(tmp_path):
    plan = variant_plan("fp32_out")
    ptx = ptx_of(variant_project("fp32_out"), tmp_path, plan.arch)
    problem = make_problem(plan, (65, 130, 129), 3, "normal")
    first, second = (run(plan, ptx, problem, seed=5)[0] for _ in range(2))
    assert (first == second).all()


def test_command_line(kgen_command, tmp_path):
    directory = tmp_path / "p"
    assert kgen_command("new", "gemm", "--step", "7", "-o", str(directory)).returncode == 0
    done = kgen_command("emulate", str(directory), "--shape", "70,40,130", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["place"] == "emulator" and [c["ok"] for c in answer["cases"]] == [True, True]


def test_spec_text_of_a_variant_keeps_its_comments():
    assert "#" in spec_text("fp16")
