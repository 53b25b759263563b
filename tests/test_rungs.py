"""The presets after the last step of the ladder: proven by the check, compiled cleanly, right in the emulator.

`-m slow` runs all shapes and, on the one that wraps the rings most, three timings; without it a small shape each.
"""

from dataclasses import replace

import pytest
from rungs import RUNGS, VARIANTS, made

from kgen.build import compile_cubin, compile_ptx
from kgen.commands.sources import source_of_text
from kgen.emulation import CLC_MODES, make_problem, prove, run, shapes
from kgen.errors import PlanError, SpecError
from kgen.protocol.explore import check
from kgen.protocol.from_plan import program_of, tiles_per_cta
from kgen.spec.edit import set_values


def compiled(name, directory):
    found = made(name)
    for path, text in found.files().items():
        (directory / path).write_text(text)
    return found.plan, directory


def test_the_rungs_are_these():
    assert set(RUNGS) == {
        "deep_ring", "small_tiles", "two_accumulators", "chunked_store", "raster", "clc", "split_k",
        "tf32", "fp8", "mxfp8", "mxfp4", "nvfp4", "mn_major",
    }  # fmt: skip


@pytest.mark.parametrize("name", [*RUNGS, *VARIANTS])
def test_it_is_proven_and_its_lines_are_short(name):
    found = made(name)
    assert found.certificate().startswith("proven: ")
    assert max(map(len, found.files()[f"{found.plan.name}.cu"].split("\n"))) <= 120


@pytest.mark.parametrize("name", [*RUNGS, *VARIANTS])
def test_it_compiles_cleanly(name, tmp_path):
    plan, project = compiled(name, tmp_path)
    (kernel,) = compile_cubin(project, plan.arch).kernels  # raises on a warning, a spill, an ignored setmaxnreg
    assert kernel.spill_stores == kernel.spill_loads == kernel.stack_frame == 0
    assert kernel.registers <= plan.launch.launch_registers


@pytest.mark.parametrize("name", [*RUNGS, *VARIANTS])
def test_it_is_right(name, tmp_path):
    plan, project = compiled(name, tmp_path)
    ptx = compile_ptx(project, plan.arch).artifact.read_text()
    tile_m, tile_n = plan.cluster_tile
    depth = (plan.stages + 1) * plan.cta_tile[2] - 5
    proof = prove(plan, ptx, only=[(tile_m + 1, tile_n + 9, depth + depth % plan.input.packed)])
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNGS)
def test_it_is_right_on_every_shape_and_timing(name, tmp_path):
    plan, project = compiled(name, tmp_path)
    ptx = compile_ptx(project, plan.arch).artifact.read_text()
    chosen = shapes(plan)
    assert len(chosen) == 6
    proof = prove(plan, ptx)
    proof.cases += prove(plan, ptx, only=chosen[4:5], seeds=3).cases  # wraps the rings most
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]
    assert len(proof.cases) == 2 * 6 + 2 * 3


@pytest.mark.parametrize("mode", CLC_MODES)
def test_every_tile_is_computed_whatever_launch_control_answers(mode, tmp_path):
    plan, project = compiled("clc_alone", tmp_path)
    ptx = compile_ptx(project, plan.arch).artifact.read_text()
    problem = make_problem(plan, (3 * plan.cluster_tile[0] - 5, 2 * plan.cluster_tile[1], 65), 1, "integers")
    d, intact, _ = run(plan, ptx, problem, seed=4, clc=mode)
    assert intact and (d.astype(float) == _product(problem).astype(d.dtype).astype(float)).all()


BROKEN = {  # what a template might say instead, and the variant whose kernel it changes
    "a role that frees no answer": ("clc_alone", "  mbarrier_arrive(smem.clc_empty[clc.slot]);\n", ""),
    "the answer's bytes": ("clc_alone", "clc_full[clc.slot], CLC_BYTES)", "clc_full[clc.slot], CLC_BYTES + 16)"),
    "asking on": ("clc_alone", "while (next_tile(smem, clc) >= 0)", "while (next_tile(smem, clc) >= -1)"),
    "the counter left": ("split_k_alone", "*counter = 0;", "*counter = before + 1;"),
    "who is last": ("split_k_alone", "0) + 1 == splits;", "0) == 0;"),
    "the first k tile": ("split_k_alone", "k0 > range.begin)", "k0 > 0)"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_kernel_is_caught(what, tmp_path):
    name, before, after = BROKEN[what]
    plan, project = compiled(name, tmp_path)
    path = project / f"{name}.cu"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    ptx = compile_ptx(project, plan.arch).artifact.read_text()
    tile_m, tile_n = plan.cluster_tile
    proof = prove(plan, ptx, only=[(5 * tile_m - 3, 3 * tile_n, 130)], seeds=2)
    assert proof.exit_code != 0


def _product(problem):
    return problem.a.values @ problem.b.values.T


def test_a_split_gives_the_same_bits_whoever_comes_last(tmp_path):
    plan, project = compiled("split_k_alone", tmp_path)
    ptx = compile_ptx(project, plan.arch).artifact.read_text()
    problem = make_problem(plan, (130, 70, 300), 1, "normal")
    results = [run(plan, ptx, problem, seed=seed)[0] for seed in range(4)]
    assert all((d == results[0]).all() for d in results)


@pytest.mark.parametrize(
    ("base", "assignment", "message"),
    [
        ("split_k", "schedule.kind=clc", "kind: clc gives a CTA whole tiles"),
        ("split_k", "epilogue.store=direct", "sums leave through store boxes"),
        ("split_k", "schedule.split_k=17", "17 is above 16"),
        ("clc", "schedule.ctas=8", "kind: clc launches one CTA per tile"),
    ],
)
def test_what_does_not_fit_is_refused(base, assignment, message):
    with pytest.raises((SpecError, PlanError), match=message):
        source_of_text(set_values(RUNGS[base].text, [assignment]), "x")


@pytest.mark.parametrize("more", [1, -1])
def test_a_wrong_count_of_who_reads_answers_is_found(more):
    """One too many: the scheduler waits for ever. One too few: an answer is overwritten under a reader."""
    plan = made("clc_alone").plan
    program = program_of(plan)
    counts = [replace(b, count=b.count + more * (b.name == "clc_empty")) for b in program.barriers]
    assert check(program, tiles_per_cta(plan)).proven
    assert not check(replace(program, barriers=tuple(counts)), tiles_per_cta(plan)).proven
