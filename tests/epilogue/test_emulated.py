"""Every step of an epilogue on both architectures, against float64."""

import math
from functools import cache

import numpy as np
import pytest
from chains import ARCHS, CHAINS, LONG, SHAPES, project

from kgen.build import compile_ptx
from kgen.emulation import cases, make_problem, references, run
from kgen.emulation_epilogue import _step, apply, reduce
from kgen.plan.epilogue import finish
from kgen.proving import Case
from kgen.spec.gemm.epilogue import Op
from kgen.spec.gemm.ops import OPERATIONS, REDUCTIONS


@cache
def _ptx(arch, ops, more, directory):
    plan, files = project(arch, ops, more)
    for path, text in files.items():
        (directory / path).write_text(text)
    return compile_ptx(directory, plan.arch).artifact.read_text()


def wrong(arch, ops, more, directory, only):
    plan, _ = project(arch, ops, more)
    found = cases(plan, _ptx(arch, ops, more, directory), only=only, kinds=("normal",))
    return [c for c in found if isinstance(c, Case) and not c.ok]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CHAINS)
def test_chain(name, arch, tmp_path):
    assert wrong(arch, *CHAINS[name], tmp_path, SHAPES) == []


@pytest.mark.parametrize("arch", ARCHS)
def test_long_chain(arch, tmp_path):
    assert wrong(arch, LONG, "tile.n=128", tmp_path, SHAPES[:1]) == []


def test_the_chains_hold_every_step():
    named = {word for ops, _ in CHAINS.values() for word in (*OPERATIONS, *REDUCTIONS) if word in ops}
    assert named == {*OPERATIONS, *REDUCTIONS}


def test_c_is_not_read_where_beta_is_zero(tmp_path):
    plan, _ = project("sm_90a", *CHAINS["matrices"])
    problem = make_problem(plan, SHAPES[0], 0, "normal")
    problem.extras["beta"] = np.float32(0)
    exact, plain = references(plan, problem)
    problem.extras["c"][:] = np.nan
    d, intact, _ = run(plan, _ptx("sm_90a", *CHAINS["matrices"], tmp_path), problem)
    assert intact and abs(d - exact).max() <= 2 * abs(plain - exact).max()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("column = min(column, e.columns - 1);", ""),  # reads past the edge of the bias
        ("bias[column]", "bias[column + 1 < e.columns ? column + 1 : column]"),
        ("x < 0.0f ? 0.0f : x", "x"),
        ("r < e.rows) publish", "true) publish"),
    ],
)
def test_a_broken_epilogue_is_caught(before, after, tmp_path):
    ops, more = CHAINS["direct"]
    plan, files = project("sm_90a", ops, more)
    assert before in files["epi.cu"]
    for path, text in files.items():
        (tmp_path / path).write_text(text.replace(before, after))
    ptx = compile_ptx(tmp_path, plan.arch).artifact.read_text()
    found = [c for c in cases(plan, ptx, only=SHAPES[:1], kinds=("normal",)) if isinstance(c, Case)]
    assert not any(c.ok for c in found)


# What each step means, written down a second time.
MEANING = {
    "alpha": lambda x, e: x * e["alpha"],
    "beta_c": lambda x, e: x + e["beta"] * e["c"],
    "bias": lambda x, e: x + e["bias"],
    "row_scale": lambda x, e: (x.T * e["row_scale"]).T,
    "column_scale": lambda x, e: x * e["column_scale"],
    "residual": lambda x, e: x + e["residual"],
    "relu": lambda x, e: np.maximum(x, 0),
    "gelu_tanh": lambda x, e: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x, e: x * np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2)(x),
    "silu": lambda x, e: x / (1 + np.exp(-x)),
    "swiglu": lambda x, e: x[:, ::2] / (1 + np.exp(-x[:, ::2])) * x[:, 1::2],
    "cast": lambda x, e: x * e["scale_d"],
}


def _drawn(f, m, n, rng):
    shapes = {"scalar": (), "row": (m,), "column": (n,), "matrix": (m, n)}
    return {a.name: np.asarray(rng.standard_normal(shapes[a.broadcast])) for a in f.arguments}


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_step_means_what_its_name_says(op):
    f, rng = finish((Op(op=op),)), np.random.default_rng(1)
    x, drawn = rng.standard_normal((5, 6)), _drawn(f, 5, 6, rng)
    np.testing.assert_allclose(apply(f, x, drawn), MEANING[op](x, drawn), rtol=1e-14)


def test_a_reduction_means_what_its_name_says():
    x = np.array([[1.0, -5.0], [2.0, 3.0]])
    f = finish(tuple(Op(op=op) for op in REDUCTIONS))
    found = {name: values.tolist() for name, values in reduce(f, x).items()}
    assert found == {"row_sum": [-4, 5], "column_sum": [3, -2], "row_max_abs": [5, 3], "column_max_abs": [2, 5]}


def test_functions_of_literals_leave_the_precision():
    """Else the plain computation of the steps after them would be too exact to compare with."""
    code = "x * (erf(0.5) + sqrt(2) + sigmoid(1))"
    f = finish((Op(op="expr", name="own", code=code),))
    (step,) = f.steps
    for real in (np.float32, np.float64):
        assert _step(step, {"x": np.ones((2, 2), real)}, {}).dtype == real
