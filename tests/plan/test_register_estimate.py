"""The estimate of an epilogue's registers: it refuses what ptxas was seen to spill, and takes what compiled cleanly.

The samples are from the compilations by which the estimate was fitted; some are compiled again.
"""

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

BIAS, RESIDUAL, C = "{op: bias, type: bf16}", "{op: residual, type: bf16}", "{op: beta_c, type: bf16}"
OWN = (
    '{"op": "expr", "name": "own", "type": "bf16", "rows": ["r"], "columns": ["c"], "matrices": ["e"], '
    '"code": "max(x, -2) * r + abs(c) - (e < 0.5 && x > 0 ? min(e, x) : sqrt(2))"}'
)
LEAKY = '{"op": "expr", "name": "leaky", "scalars": ["slope"], "code": "x > 0 ? x : slope * x"}'
OPS = {
    "gelu": f"[alpha, {BIAS}, gelu_tanh]",
    "erf": f"[{BIAS}, gelu_erf]",
    "erf_residual": f"[{BIAS}, gelu_erf, {RESIDUAL}]",
    "residual": f"[{RESIDUAL}]",
    "beta_c": f"[alpha, {C}]",
    "two": f"[alpha, {C}, {RESIDUAL}]",
    "sums": "[row_sum, column_sum]",
    "all_sums": "[row_sum, column_sum, row_max_abs, column_max_abs]",
    "erf_sums": f"[{BIAS}, gelu_erf, {RESIDUAL}, row_sum, column_max_abs]",
    "swiglu": "[swiglu]",
    "swiglu_long": f"[{BIAS}, swiglu, {RESIDUAL}, row_sum]",
    "own": f"[{OWN}, {LEAKY}]",
}
_THREE = "tile.n=128 pipeline.stages=2 epilogue.staging=1 schedule.ctas_per_sm=3"
_CONTROL = "warps.registers.control=64 warps.registers.epilogue"
# arch, step, assignments: the lists that spill, and those that compile cleanly
SEEN = {
    "two consumers": ("sm_90a", 9, "", [], ["gelu", "erf_residual", "residual", "erf_sums", "swiglu_long", "own"]),
    "with 176": (
        "sm_90a", 9, "warps.registers.consumer=176", ["gelu", "beta_c", "erf_residual", "sums", "erf_sums"], []
    ),
    "with 208": ("sm_90a", 9, "warps.registers.consumer=208", ["residual", "own"], ["gelu", "sums", "swiglu"]),
    "half as wide": ("sm_90a", 9, "tile.n=128", [], ["erf_sums", "swiglu_long", "own", "two", "swiglu"]),
    "half as wide with 136": (
        "sm_90a", 9, "tile.n=128 warps.registers.consumer=136", ["beta_c", "swiglu_long", "erf_sums", "two"], ["gelu"]
    ),
    "fp32": ("sm_90a", 9, "dtype.output=fp32", [], ["residual", "beta_c", "sums", "own", "erf_sums", "two"]),
    "e4m3": ("sm_90a", 9, "dtype.output=e4m3", ["residual", "erf_sums", "swiglu_long"], ["gelu"]),
    "no split": ("sm_90a", 7, "", ["two"], ["gelu", "residual", "erf_sums", "swiglu_long", "own"]),
    "three to an SM": ("sm_90a", 7, _THREE, ["own", "beta_c"], ["gelu", "swiglu"]),
    "one warpgroup": ("sm_90a", 6, "", [], ["gelu", "swiglu", "erf_sums", "swiglu_long"]),
    "a lone consumer": (
        "sm_100a", 8, f"{_CONTROL}=216", ["erf_residual", "own", "two"],
        ["gelu", "residual", "beta_c", "all_sums", "swiglu"],
    ),
    "a lone consumer with 120": ("sm_100a", 8, f"{_CONTROL}=120", ["gelu", "erf"], ["sums", "all_sums"]),
    "a lone consumer, fp32": (
        "sm_100a", 8, f"dtype.output=fp32 {_CONTROL}=160", ["two", "swiglu_long", "erf_sums"], ["beta_c", "gelu"]
    ),
    "a lone consumer, e4m3": ("sm_100a", 8, f"dtype.output=e4m3 {_CONTROL}=208", ["residual"], []),
    "a lone consumer, e4m3, 216": ("sm_100a", 8, f"dtype.output=e4m3 {_CONTROL}=216", [], ["residual"]),
    "a pair of two": (
        "sm_100a", 9, "", ["beta_c", "own", "erf_sums", "swiglu_long"], ["gelu", "residual", "all_sums", "sums"]
    ),
    "a pair of two with 136": ("sm_100a", 9, f"{_CONTROL}=136", ["residual", "erf_sums", "all_sums"], ["sums"]),
    "two CTAs to an SM": (
        "sm_100a", 7, "tile.n=128 pipeline.stages=2 epilogue.staging=1 schedule.ctas_per_sm=2", ["own", "erf_sums"], []
    ),
    "one warpgroup of Blackwell": ("sm_100a", 5, "", ["two"], ["gelu", "erf", "beta_c", "erf_sums"]),
}  # fmt: skip
# What the estimate refuses although it compiled cleanly: near these, other register counts spill.
TOO_STRICT = [
    ("a lone consumer", "swiglu_long"), ("a lone consumer", "erf_sums"), ("a lone consumer with 120", "swiglu")
]  # fmt: skip
COMPILED = [
    ("with 176", "gelu"), ("half as wide", "own"), ("e4m3", "residual"), ("no split", "swiglu_long"),
    ("a lone consumer", "erf_residual"), ("a lone consumer", "beta_c"), ("a pair of two", "beta_c"),
]  # fmt: skip


def text_of(case, ops):
    arch, step, assignments, *_ = SEEN[case]
    return set_values(preset("gemm", step, arch).text, [f"epilogue.ops={OPS[ops]}", *assignments.split()])


@pytest.mark.parametrize(("case", "ops"), [(c, ops) for c, (*_, spilled, _) in SEEN.items() for ops in spilled])
def test_what_spilled_is_refused_with_a_way_out(case, ops):
    loaded = parse_spec(text_of(case, ops), "f.yaml")
    with pytest.raises(PlanError) as caught:
        make_plan(loaded.spec)
    (refusal,) = caught.value.refusals
    assert refusal.field == "epilogue.ops" and "registers per thread" in refusal.what and refusal.hint
    assert str(loaded.located(caught.value)).startswith("f.yaml:")
    if refusal.hint.startswith("set "):
        field, _, value = refusal.hint.removeprefix("set ").partition(",")[0].partition(": ")
        make_plan(parse_spec(set_values(text_of(case, ops), [f"{field}={value}", "epilogue.staging=2"])).spec)


@pytest.mark.parametrize(("case", "ops"), [(c, ops) for c, (*_, clean) in SEEN.items() for ops in clean])
def test_what_compiled_cleanly_is_planned(case, ops):
    make_plan(parse_spec(text_of(case, ops)).spec)


@pytest.mark.parametrize(("case", "ops"), TOO_STRICT)
def test_what_is_refused_to_be_safe(case, ops):
    """Known, so that a better estimate is noticed and its cases move to those that are planned."""
    with pytest.raises(PlanError):
        make_plan(parse_spec(text_of(case, ops)).spec)


@pytest.mark.parametrize(("case", "ops"), COMPILED)
def test_the_sample_is_what_ptxas_does(case, ops, tmp_path, monkeypatch):
    arch, _, _, spilled, _ = SEEN[case]
    monkeypatch.setattr(f"kgen.plan.gemm_{arch.replace('_', '')}.epilogue_limits", lambda g: [])
    text = text_of(case, ops)
    plan = make_plan(parse_spec(text).spec)
    for path, content in render_project(plan, text).items():
        (tmp_path / path).write_text(content)
    (kernel,) = compile_cubin(tmp_path, plan.arch, strict=False).kernels
    assert (ops in spilled) == bool(kernel.stack_frame or kernel.spill_stores)


@pytest.mark.parametrize(
    ("threads", "residents", "registers"),
    [
        (384, 1, 168), (352, 1, 168), (288, 1, 168), (160, 1, 255),
        (192, 2, 168), (160, 3, 128), (192, 3, 96), (352, 2, 80),
    ],
)  # fmt: skip
def test_registers_at_launch_are_what_ptxas_gives(threads, residents, registers):
    assert registers_at_launch(SM_90A, threads, residents) == registers
