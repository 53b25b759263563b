"""Epilogues that the tests run: together they hold every step, on small tiles of both architectures."""

from __future__ import annotations

from functools import cache

from kgen.plan import make_plan
from kgen.presets import preset
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

LEAKY = '{"op": "expr", "name": "leaky", "scalars": ["slope"], "code": "x > 0 ? x : slope * x"}'
OWN = (
    '{"op": "expr", "name": "own", "type": "bf16", "rows": ["r"], "columns": ["c"], "matrices": ["e"], '
    '"code": "max(x, -2) * r + abs(c) - (e < 0.5 && x > 0 ? min(e, x) : sqrt(2))"}'
)
GATE = '{"op": "expr", "name": "gate", "pairs": true, "code": "tanh(x) * y"}'

# name: (the list, other assignments)
CHAINS = {
    "scales": ("[alpha, {op: bias, type: bf16}, row_scale, column_scale, relu, cast]", ""),
    "matrices": ("[{op: beta_c, type: bf16}, {op: residual, type: fp16}, gelu_tanh]", "dtype.output=fp32"),
    "sums": ("[gelu_erf, silu, row_sum, column_sum]", ""),
    "pairs": ("[{op: bias, type: fp16}, swiglu, column_scale, row_max_abs, column_max_abs]", "tile.n=128"),
    "own": (f"[{OWN}, {LEAKY}]", ""),
    "direct": ("[bias, relu, row_sum, column_max_abs]", "epilogue.store=direct"),
    "direct_pairs": (f"[{GATE}, row_scale, row_sum]", "epilogue.store=direct"),
    "pairs_of_fp32": ("[swiglu, residual, row_sum]", "dtype.output=fp32"),
}
LONG = (
    "[alpha, {op: beta_c, type: bf16}, {op: bias, type: fp16}, row_scale, column_scale, gelu_tanh, swiglu, "
    f"{{op: residual, type: fp32}}, silu, {LEAKY}, {OWN}, relu, cast, row_sum, column_sum, row_max_abs, column_max_abs]"
)
ARCHS = ("sm_90a", "sm_100a")
SHAPES = [(33, 70, 20), (65, 22, 40)]  # odd against every tile, box and step


@cache
def project(arch: str, ops: str, more: str = ""):
    """Plan and files of a small kernel with an epilogue."""
    values = ["name=epi", "tile.n=64", f"epilogue.ops={ops}", *more.split()]
    text = set_values(preset("gemm", 5, arch).text, values)
    plan = make_plan(parse_spec(text).spec)
    return plan, render_project(plan, text)
