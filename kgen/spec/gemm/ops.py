"""The epilogue's operations: what each computes, and what it reads to do so.

An operation is an expression over `x`, the element so far, and its own arguments. A built-in one is written in the
language in which a user writes another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Broadcast = Literal["scalar", "row", "column", "matrix"]


@dataclass(frozen=True)
class Operation:
    """`arguments` are (name, broadcast): a scalar is one number for all, `row` one for each row of D, `column` one for
    each column, `matrix` one for each element. `pairs` make one column of two neighbours, `x` and `y`. A `sparing` one
    reads an array only where its expression comes to it."""

    about: str
    code: str
    arguments: tuple[tuple[str, Broadcast], ...] = ()
    pairs: bool = False
    sparing: bool = False

    @property
    def typed(self) -> bool:
        """Whether it reads arrays, whose element type the spec gives."""
        return any(broadcast != "scalar" for _, broadcast in self.arguments)


@dataclass(frozen=True)
class Reduction:
    """A vector of fp32 that the kernel adds to, or raises: a number for each row or column of D."""

    about: str
    along: Literal["row", "column"]
    how: Literal["sum", "max_abs"]


OPERATIONS = {
    "alpha": Operation("times a scalar", "alpha * x", (("alpha", "scalar"),)),
    "beta_c": Operation(
        "plus beta * C; C is not read where beta is 0",
        "x + (beta == 0 ? 0 : beta * c)",
        (("beta", "scalar"), ("c", "matrix")),
        sparing=True,
    ),
    "bias": Operation("plus a number per column", "x + bias", (("bias", "column"),)),
    "row_scale": Operation("times a number per row", "x * row_scale", (("row_scale", "row"),)),
    "column_scale": Operation("times a number per column", "x * column_scale", (("column_scale", "column"),)),
    "residual": Operation("plus a matrix", "x + residual", (("residual", "matrix"),)),
    "relu": Operation("negative numbers become 0", "x < 0 ? 0 : x"),
    "gelu_tanh": Operation(
        "GELU by its tanh formula", "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))"
    ),
    "gelu_erf": Operation("GELU", "0.5 * x * (1 + erf(x * 0.7071067811865476))"),
    "silu": Operation("x * sigmoid(x)", "x * sigmoid(x)"),
    "swiglu": Operation(
        "columns 2j and 2j+1 become column j: silu of the first times the second", "x * sigmoid(x) * y", pairs=True
    ),
    "cast": Operation("times a scalar, last of all before D's type rounds it", "x * scale_d", (("scale_d", "scalar"),)),
}
REDUCTIONS = {
    f"{along}_{how}": Reduction(f"{words} of each {along} of D before it is rounded, by atomics", along, how)
    for along in ("row", "column")
    for how, words in (("sum", "adds up the elements"), ("max_abs", "finds the largest absolute value"))
}
