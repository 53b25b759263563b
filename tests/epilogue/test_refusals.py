"""What a list of steps cannot say: one case per rule and per kind of mistake, with place and way out."""

import pytest

from kgen.errors import PlanError, SpecError
from kgen.expression import DEVICE, NUMPY, ExpressionError, parse, written
from kgen.plan import make_plan
from kgen.spec.base import parse_spec

LEAKY = "{op: expr, name: q, scalars: [s], code: 'x > 0 ? x : s * x'}"
MISTAKES = {
    "an unknown word": ("relo", "6:7: epilogue.ops.0: 'relo' is none of", "(did you mean relu?)"),
    "an unknown op": ("{op: relo}", "6:12: epilogue.ops.0.op: 'relo' is none of", "(did you mean relu?)"),
    "an unknown field": ("{op: bias, typ: fp32}", "6:18: epilogue.ops.0.typ: unknown field (did you mean type?)", ""),
    "an unknown type": ("{op: bias, type: fp8}", "6:24: epilogue.ops.0.type: 'fp8' is none of", "fp32?)"),
    "no op": ("{type: fp32}", "6:7: epilogue.ops.0.op: missing", ""),
    "no step": ("3", "6:7: epilogue.ops.0: 3 is not a mapping", ""),
    "no list of names": (
        LEAKY.replace("[s]", "s"), "6:36: epilogue.ops.0.scalars: 's' is not a list", ""),
    "no name": (LEAKY.replace("[s]", "[S]"), "6:37: epilogue.ops.0.scalars.0: 'S' must be a C identifier", ""),
}  # fmt: skip
RULES = {
    "_ops_take": ("{op: relu, type: fp32}", "6:24: epilogue.ops.0.type: relu reads no array (remove type)"),
    "_ops_take, foreign": (
        "{op: bias, code: x}", "6:24: epilogue.ops.0.code: bias takes no code; only expr does (remove it)"),
    "_ops_take, lacking": (
        "{op: expr, code: x}", "6:12: epilogue.ops.0.op: an expr needs name (add name: ...)"),
    "_ops_expression": (
        LEAKY.replace("s * x", "t * s * x"),
        "6:47: epilogue.ops.0.code: 'x > 0 ? x : t * s * x' uses t, which is no argument "
        "(declare it, as in scalars: [t])"),
    "_ops_expression, unused": (
        LEAKY.replace("s * x", "x"),
        "6:47: epilogue.ops.0.code: 'x > 0 ? x : x' does not use s (use it, or leave it out)"),
    "_ops_expression, function": (
        LEAKY.replace("s * x", "pow(s, x)"),
        "6:47: epilogue.ops.0.code: 'x > 0 ? x : pow(s, x)' calls 'pow'; known are exp, log, sqrt, tanh, erf, abs, "
        "sigmoid, min, max"),
    "_ops_once": (
        "alpha\n    - alpha",
        "7:7: epilogue.ops.1: alpha has an argument alpha, which there is already "
        "(name an expr differently; other steps stand once)"),
    "_ops_order": (
        "row_sum\n    - relu",
        "6:7: epilogue.ops.0: row_sum reduces what is stored, and relu changes it after (put it last)"),
    "_ops_order, pairs": (
        "swiglu\n    - swiglu", "7:7: epilogue.ops.1: swiglu halves D's columns a second time (make pairs once)"),
    "_ops_order, cast": (
        "cast\n    - relu", "6:7: epilogue.ops.0: cast comes right before rounding, and relu after it (put it last)"),
}  # fmt: skip


def spec(arch, ops, more=""):
    return f"kernel: gemm\narch: {arch}\nname: x\nepilogue:\n  ops:\n    - {ops}\n{more}"


def messages(arch, ops):
    with pytest.raises(SpecError) as caught:
        parse_spec(spec(arch, ops), "f.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_with_its_place(case, arch):
    ops, begins, ends = MISTAKES[case]
    (message,) = messages(arch, ops)
    assert message.startswith(f"f.yaml:{begins}") and message.endswith(ends)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("case", RULES)
def test_a_rule_names_what_is_wrong_and_the_way_out(case, arch):
    ops, expected = RULES[case]
    assert messages(arch, ops) == [f"f.yaml:{expected}"]


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("store", "n"), [("tma", 64), ("direct", 32)])
def test_pairs_need_a_tile_of_whole_boxes(arch, store, n):
    text = spec(arch, "swiglu", f"  store: {store}\ntile: {{n: {n}}}\n")
    if (arch, store) == ("sm_90a", "direct"):
        assert make_plan(parse_spec(text).spec).pairs  # eight columns of a fragment always hold whole pairs
        return
    with pytest.raises(PlanError, match=f"{n // 2} .*set tile.n: {2 * n}"):
        make_plan(parse_spec(text).spec)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("", "lacks a number or a name at its end"),
        ("x +", "lacks a number or a name at its end"),
        ("x x", "goes on after its end"),
        ("x > 0", "is true or false"),
        ("x ? 1 : 2", "a comparison is wanted"),
        ("(x", "lacks ')'"),
        ("x > 0 ? 1", "lacks ':'"),
        ("min(x)", "gives min 1 arguments; it takes 2"),
        ("x; y", "a character it cannot have: ';'"),
        ("x /* */", "lacks a number"),
        ("asm(x)", "calls 'asm'"),
        ("(" * 100 + "x" + ")" * 100, "nested too deeply"),
        ("-" * 100 + "x", "nested too deeply"),
    ],
)
def test_an_expression_that_is_none(code, why):
    with pytest.raises(ExpressionError) as caught:
        parse(code)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("code", "device", "numpy"),
    [
        ("x - (y - 1)", "x - (y - 1.0f)", "x - (y - 1.0)"),
        ("-(x + 1) * 2e3", "-(x + 1.0f) * 2e3f", "-(x + 1.0) * 2e3"),
        (
            "x < 0 && y < 0 ? 0 : max(x, y)",
            "(x < 0.0f) && (y < 0.0f) ? 0.0f : fmaxf(x, y)",
            "np.where((x < 0.0) & (y < 0.0), 0.0, np.maximum(x, y))",
        ),
        ("sqrt(2) * exp(x)", "sqrtf(2.0f) * expf(x)", "float(np.sqrt(2.0)) * np.exp(x)"),
        ("1 + (x > 0 ? x : y)", "1.0f + (x > 0.0f ? x : y)", "1.0 + np.where(x > 0.0, x, y)"),
    ],
)
def test_an_expression_in_both_languages(code, device, numpy):
    names = {"x": "x", "y": "y"}
    assert written(parse(code), names, DEVICE) == device
    assert written(parse(code), names, NUMPY) == numpy
