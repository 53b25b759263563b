"""What the check finds wrong in a program, the emulator finds in a kernel with the same mistake, at the same place."""

import re

import pytest
from equal_mutants import MUTANTS, changed, named_by_emulator
from mutations import MUTATIONS

from kgen.build import compile_ptx
from kgen.emulation import cases, shapes
from kgen.plan import make_plan
from kgen.presets import preset
from kgen.protocol import program_of
from kgen.protocol.explore import check
from kgen.protocol.report import report
from kgen.proving import Case
from kgen.render import render_project
from kgen.spec.base import parse_spec


def failure(mutant, plan, text, directory) -> Case | None:
    """The first run of the mutated kernel that fails: several tiles per CTA and rings that wrap, or a deep tile."""
    files = render_project(plan, text)
    files[f"{plan.name}.cu"] = changed(files[f"{plan.name}.cu"], mutant.kernel)
    for path, content in files.items():
        (directory / path).write_text(content)
    ptx = compile_ptx(directory, plan.arch).artifact.read_text()
    deep = [(*plan.cluster_tile, mutant.laps * plan.stages * plan.cta_tile[2])]
    found = cases(plan, ptx, only=deep if mutant.laps else shapes(plan)[4:6], seeds=2)
    return next((c for c in found if isinstance(c, Case) and not c.ok), None)


def parameters():
    """One mutant of each kind runs every time, further ones are slow."""
    seen = set()
    for m in MUTANTS:
        yield pytest.param(m, id=f"{m.kind} {m.step}".replace(" ", "_"), marks=[pytest.mark.slow] * (m.kind in seen))
        seen.add(m.kind)


@pytest.mark.parametrize("mutant", list(parameters()))
def test_check_and_emulator_name_the_same_place(mutant, tmp_path):
    text = preset("gemm", mutant.step, "sm_90a").text
    plan = make_plan(parse_spec(text).spec)
    outcome = check(mutant.program(program_of(plan)))
    told = report(outcome)
    assert not outcome.proven
    assert not mutant.place or re.search(rf"\b{mutant.place}\[\d", told), told
    if mutant.place in {b.name for b in plan.barriers}:  # in words, not only among the steps of the trace
        assert f"{mutant.place}[" in outcome.violation.what + outcome.violation.arithmetic, told
    case = failure(mutant, plan, text, tmp_path)
    if mutant.survives:
        assert case is None, f"it does not survive any more: {case.note}"
        return
    assert case is not None, f"the emulator saw nothing of:\n{told}"
    named = mutant.says in case.note if mutant.says else mutant.place in named_by_emulator(case.note, plan)
    assert named, f"{told}\n--- emulator ---\n{case.note}"


def test_every_kind_of_mistake_is_in_the_sample():
    kinds = {m.kind for m in MUTANTS}
    assert kinds == set(MUTATIONS)
    assert {m.step for m in MUTANTS} == {4, 5, 7, 8, 9}
