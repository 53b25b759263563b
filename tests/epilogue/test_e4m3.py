"""D of e4m3: scaled by cast, rounded and saturating, through TMA and directly, on both architectures."""

import numpy as np
import pytest
from chains import ARCHS, project

from kgen.build import compile_ptx
from kgen.commands.sources import source_of_text
from kgen.emulation import cases, make_problem, run
from kgen.errors import PlanError
from kgen.operands import rounded
from kgen.plan.resources import DTYPES
from kgen.presets import named_presets
from kgen.proving import Case
from kgen.render import render_project
from kgen.spec.edit import set_values

SHAPE = (67, 150, 40)  # odd rows; a whole box, a 16-byte step of the next, and a tail of six columns
KERNELS = {
    "tma": ("[cast]", "tile.n=128"),
    "steps": ("[alpha, bias, relu, cast, row_max_abs]", "tile.n=128"),
    "bare": ("[]", "tile.n=128"),
    "pairs": ("[swiglu, cast]", "tile.n=256"),
    "direct": ("[cast]", "tile.n=96 epilogue.store=direct"),
    "direct_bare": ("[]", "epilogue.store=direct"),
}


def built(arch, name, directory):
    ops, more = KERNELS[name]
    plan, files = project(arch, ops, f"{more} dtype.output=e4m3")
    for path, text in files.items():
        (directory / path).write_text(text)
    return plan, compile_ptx(directory, plan.arch).artifact.read_text()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", KERNELS)
def test_d_is_right(name, arch, tmp_path):
    plan, ptx = built(arch, name, tmp_path)
    found = [c for c in cases(plan, ptx, only=[SHAPE]) if isinstance(c, Case)]
    assert len(found) == 2 and [c for c in found if not c.ok] == []


def test_sums_of_splits_are_rounded_once(tmp_path):
    preset = next(p for p in named_presets("gemm", "sm_100a") if p.name == "split_k")
    text = set_values(preset.text, ["name=split", "tile.n=128", "dtype.output=e4m3", "epilogue.ops=[cast]"])
    plan = source_of_text(text, "split").plan
    for path, content in render_project(plan, text).items():
        (tmp_path / path).write_text(content)
    ptx = compile_ptx(tmp_path, plan.arch).artifact.read_text()
    found = [c for c in cases(plan, ptx, only=[(67, 150, 400)], kinds=("normal",)) if isinstance(c, Case)]
    assert len(found) == 1 and found[0].ok


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["tma", "direct"])
def test_it_saturates(name, arch, tmp_path):
    plan, ptx = built(arch, name, tmp_path)
    problem = make_problem(plan, SHAPE, 0, "integers")
    problem.extras["scale_d"] = np.float32(16)
    product = problem.a.values @ problem.b.values.T * 16
    d, intact, _ = run(plan, ptx, problem)
    assert intact and (abs(product) > 448).any() and (abs(product) < 448).any()
    assert d.tolist() == rounded(product, plan.output).tolist()
    assert abs(d.astype(float)).max() == 448


def test_the_reference_saturates():
    assert rounded(np.array([1e4, -1e4, 448.0, 1.0625]), DTYPES["e4m3"]).astype(float).tolist() == [448, -448, 448, 1]


@pytest.mark.parametrize("arch", ARCHS)
def test_a_store_box_has_128_columns(arch):
    with pytest.raises(PlanError, match=r"64 columns of e4m3 .* of 128 columns.*set tile.n: 128, or"):
        project(arch, "[cast]", "dtype.output=e4m3")


@pytest.mark.parametrize("arch", ARCHS)
def test_rows_of_d_start_at_16_bytes(arch):
    plan, files = project(arch, "[cast]", "tile.n=128 dtype.output=e4m3")
    assert plan.row_step == 16 and "rounded(plain)" in files["test_epi.py"]
    assert {t.name: (t.box_columns, t.dtype) for t in plan.tensor_maps}["map_d"] == (
        128, "CU_TENSOR_MAP_DATA_TYPE_UINT8"
    )  # fmt: skip
