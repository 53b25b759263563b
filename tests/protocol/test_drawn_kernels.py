"""What the check proves also runs: drawn specs, rendered, compiled and executed in the emulator.

All of them are `slow`; the first few, which were drawn to differ most, run every time. On a card they run through
tests/device/write_projects.py and run_projects.py.
"""

import pytest
from drawn_specs import COUNT, drawn_pool, drawn_specs, odd_shapes, pairs

from kgen.build import compile_ptx
from kgen.emulation import prove
from kgen.presets import presets
from kgen.protocol import certify
from kgen.render import render_project
from kgen.spec.base import parse_spec

FEW = 6


def runs_right(drawn, directory) -> None:
    certificate = certify(drawn.plan)
    for path, text in render_project(drawn.plan, drawn.text, certificate).items():
        (directory / path).write_text(text)
    ptx = compile_ptx(directory, drawn.plan.arch).artifact.read_text()
    proof = prove(drawn.plan, ptx, only=odd_shapes(drawn.plan), seeds=2)
    assert proof.exit_code == 0, (drawn.text, [c for c in proof.cases if not c.ok])
    assert len(proof.cases) == 8  # two shapes, normal numbers and integers, two timings


@pytest.mark.parametrize("number", range(FEW))
def test_a_few_drawn_specs_run_right(number, tmp_path):
    runs_right(drawn_specs()[number], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(FEW, COUNT))
def test_drawn_specs_run_right(number, tmp_path):
    runs_right(drawn_specs()[number], tmp_path)


def test_the_draw_reaches_every_pair_of_choices():
    """Whatever two choices the pool shows together, some chosen spec shows together."""
    assert len({d.name for d in drawn_specs()}) == COUNT
    possible = set().union(*(pairs(d.choices) for d in drawn_pool()))
    assert possible == set().union(*(pairs(d.choices) for d in drawn_specs()))


def test_no_preset_is_drawn():
    steps = [parse_spec(p.text).spec.model_dump(exclude={"name", "step"}) for p in presets()]
    for drawn in drawn_specs():
        assert parse_spec(drawn.text).spec.model_dump(exclude={"name", "step"}) not in steps, drawn.name
