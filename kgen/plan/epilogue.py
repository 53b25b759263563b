"""What becomes of an element between its accumulator and its rounding: arguments, steps, reductions.

Whatever the architecture: it decides only which elements a thread holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kgen.expression import Node, parse
from kgen.plan.resources import DTYPES, Dtype
from kgen.spec.gemm.epilogue import Op
from kgen.spec.gemm.ops import REDUCTIONS

WHOLE, HALF = "n", "n / 2"  # columns of the product, and of D where pairs of them become one


@dataclass(frozen=True)
class Argument:
    """A member of the kernel's argument struct. `columns` of D's width or the product's, as far as it has any."""

    name: str
    broadcast: Literal["scalar", "row", "column", "matrix"]
    dtype: Dtype
    columns: str
    op: str
    written: bool = False

    @property
    def stride(self) -> str:
        """The member that gives the row stride of a matrix; empty for the others."""
        if self.broadcast != "matrix":
            return ""
        return "ldc" if self.name == "c" else f"ld_{self.name}"

    @property
    def extents(self) -> str:
        """As C people write them."""
        return {"scalar": "", "row": "[m]", "column": f"[{self.columns}]", "matrix": f"[m, {self.columns}]"}[
            self.broadcast
        ]

    @property
    def count(self) -> str:
        """Its elements, where a matrix has no padding, out of m and n."""
        return {"scalar": "1", "row": "m", "column": self.columns, "matrix": f"m * ({self.columns})"}[self.broadcast]

    @property
    def ctype(self) -> str:
        """In the kernel, followed by the name."""
        if self.broadcast == "scalar":
            return "float "
        return ("" if self.written else "const ") + f"{self.dtype.ctype} *"

    @property
    def read(self) -> str:
        """The expression that reads it for the element at `row` and `column`."""
        if self.broadcast == "scalar":
            return f"e.{self.name}"
        at = {"row": "row", "column": "column", "matrix": f"row * e.{self.stride} + column"}[self.broadcast]
        element = f"e.{self.name}[{at}]"
        return element if self.dtype.name == "fp32" else f"float({element})"


@dataclass(frozen=True)
class Step:
    """One expression: `x` becomes what `tree` gives; `names` are its arguments by the names it uses."""

    op: str
    tree: Node
    names: dict[str, Argument]
    pairs: bool = False
    sparing: bool = False  # reads an array only where the expression comes to it

    @property
    def reads_ahead(self) -> bool:
        """Whether arrays are read before the expression: a read inside a conditional would become a branch."""
        return not self.sparing and "?" in self.tree.words()


@dataclass(frozen=True)
class Reduced:
    """A reduction of what the steps leave, before it is rounded."""

    op: str
    along: str
    how: str
    argument: Argument

    @property
    def terms(self) -> str:
        """How many elements come together in each of its numbers, out of m and n."""
        return self.argument.columns if self.along == "row" else "m"


@dataclass(frozen=True)
class Finish:
    """An epilogue: the steps on columns of the product, the one that makes pairs of them columns of D, the rest."""

    before: tuple[Step, ...]
    pairing: Step | None
    after: tuple[Step, ...]
    reductions: tuple[Reduced, ...]
    arguments: tuple[Argument, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.before, *((self.pairing,) if self.pairing else ()), *self.after)

    @property
    def words(self) -> list[str]:
        """Steps and reductions in order, by the names that the spec gives them."""
        return [s.op for s in self.steps] + [r.op for r in self.reductions]

    @property
    def roundings(self) -> int:
        """Halves of a unit in the last place that a right computation of the steps may be off by, in any order."""
        return sum(s.tree.roundings for s in self.steps)

    def reduces(self, how: str) -> bool:
        """Whether any of its reductions is of this sort."""
        return any(r.how == how for r in self.reductions)

    @property
    def columns(self) -> str:
        """Of D."""
        return HALF if self.pairing else WHOLE

    @property
    def headers(self) -> set[str]:
        return {a.dtype.header for a in self.arguments if a.dtype.header}

    @property
    def scalars(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.broadcast == "scalar")

    @property
    def arrays(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.broadcast != "scalar")

    @property
    def matrices(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.broadcast == "matrix")

    @property
    def broadcasts(self) -> set[str]:
        """How what the steps read is spread over D."""
        return {a.broadcast for s in self.steps for a in s.names.values()}


def finish(ops: tuple[Op, ...]) -> Finish | None:
    """The epilogue of a valid list; None for an empty one."""
    if not ops:
        return None
    pairing = next((i for i, op in enumerate(ops) if op.operation and op.operation.pairs), None)
    before, after, reductions, pair = [], [], [], None
    for i, op in enumerate(ops):
        columns = HALF if pairing is not None and i > pairing else WHOLE
        if op.op in REDUCTIONS:
            kind = REDUCTIONS[op.op]
            argument = Argument(op.op, kind.along, DTYPES["fp32"], columns, op.op, written=True)
            reductions.append(Reduced(op.op, kind.along, kind.how, argument))
            continue
        step = _step(op, HALF if i == pairing else columns)
        if i == pairing:
            pair = step
        else:
            (before if pairing is not None and i < pairing else after).append(step)
    steps = (*before, *([pair] if pair else ()), *after)
    arguments = [a for s in steps for a in s.names.values()] + [r.argument for r in reductions]
    return Finish(tuple(before), pair, tuple(after), tuple(reductions), tuple(arguments))


def _step(op: Op, columns: str) -> Step:
    operation, label = op.operation, op.name or op.op
    names = {
        name: Argument(full, broadcast, DTYPES["fp32" if broadcast == "scalar" else op.type], columns, label)
        for (name, broadcast), full in zip(operation.arguments, op.argument_names, strict=True)
    }
    return Step(label, parse(operation.code), names, operation.pairs, operation.sparing)


def members(f: Finish) -> Iterator[tuple[str, str]]:
    """Type and name of each argument and stride, in the order of the argument struct and of the kernel's."""
    for a in f.arguments:
        yield a.ctype, a.name
        if a.stride:
            yield "int64_t ", a.stride


def headers(f: Finish | None, read: Dtype, written: Dtype) -> tuple[str, ...]:
    """CUDA's headers of the element types: what is only read may go by another type, what is written is rounded."""
    return tuple(sorted(({read.kernel_header, written.header} | (f.headers if f else set())) - {""}))
