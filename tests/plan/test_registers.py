"""Registers of a thread: what ptxas gives, and accumulators that it would spill."""

import pytest

from kgen.arch import SM_90A
from kgen.build import compile_cubin
from kgen.errors import PlanError
from kgen.plan import make_plan
from kgen.plan.registers import registers_at_launch
from kgen.presets import preset
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values


@pytest.mark.parametrize(
    ("threads", "residents", "registers"),
    [
        (384, 1, 168), (352, 1, 168), (288, 1, 168), (160, 1, 255),
        (192, 2, 168), (160, 3, 128), (192, 3, 96), (352, 2, 80),
    ],
)  # fmt: skip
def test_registers_at_launch_are_what_ptxas_gives(threads, residents, registers):
    assert registers_at_launch(SM_90A, threads, residents) == registers


def test_two_consumers_that_share_registers_evenly_hold_64_columns_each(tmp_path):
    """The plan's way out compiles cleanly; twice as wide, ptxas spills, which the plan knows."""
    base = "tile.m=128 warps.consumers=2 pipeline.stages=3"
    text = preset("gemm", 7, "sm_90a").text
    with pytest.raises(PlanError, match=r"set tile\.n: 64"):
        make_plan(parse_spec(set_values(text, [*base.split(), "tile.n=128"])).spec)
    text = set_values(text, [*base.split(), "tile.n=64"])
    plan = make_plan(parse_spec(text).spec)
    for path, content in render_project(plan, text).items():
        (tmp_path / path).write_text(content)
    (kernel,) = compile_cubin(tmp_path, plan.arch).kernels
    assert kernel.spill_stores == kernel.stack_frame == 0
