"""What in an epilogue takes registers, for the estimates by which a plan refuses what would spill.

ptxas reads as far ahead as its registers go and then may hold too much; where it does is not monotonous, neither in
the registers it has nor in the steps. The costs that each architecture puts on these traits are upper bounds fitted to
compilations, so that they refuse all that was seen to spill and some lists that compile. tests/plan holds a sample of
all three.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.expression import Node
from kgen.plan.epilogue import Finish

SLOW = {"exp", "log", "sqrt", "tanh", "erf", "sigmoid"}  # functions that take several instructions and constants


@dataclass(frozen=True)
class Traits:
    """`slow`: whether it calls such a function. `ahead`: whether arrays are read before an expression. The others count
    arguments and reductions by how they are spread over D."""

    slow: bool
    ahead: bool
    sparing: bool
    pairs: bool
    matrices: int
    columns: int
    rows: int
    row_reductions: int
    column_reductions: int


def traits(f: Finish) -> Traits:
    arguments = [a.broadcast for s in f.steps for a in s.names.values()]
    along = [r.along for r in f.reductions]
    return Traits(
        slow=any(_is_slow(s.tree) for s in f.steps),
        ahead=any(s.reads_ahead and any(a.broadcast != "scalar" for a in s.names.values()) for s in f.steps),
        sparing=any(s.sparing for s in f.steps),
        pairs=f.pairing is not None,
        matrices=arguments.count("matrix"),
        columns=arguments.count("column"),
        rows=arguments.count("row"),
        row_reductions=along.count("row"),
        column_reductions=along.count("column"),
    )


def _is_slow(node: Node) -> bool:
    return (node.kind == "call" and node.word in SLOW) or any(map(_is_slow, node.inner))
