"""What the emulator's side of an epilogue takes: arguments, the struct that carries them, and the same steps in numpy.

The model is the plan's own expressions written out for numpy, in float64 for what is right and in float32 for what
the kernel's precision can give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kgen.emulator.launch import Device
from kgen.expression import NUMPY as NUMPY_DIALECT
from kgen.expression import written
from kgen.operands import NUMPY
from kgen.plan.epilogue import WHOLE, Argument, Finish, Step, members
from kgen.surrounded import surrounded

PADDING = 3  # elements between the rows of a matrix


def draw(f: Finish | None, m: int, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random values for every argument that is read, each of its own type."""
    drawn = {}
    for a in f.arguments if f else ():
        if not a.written:
            shape = _shape(a, m, n)
            drawn[a.name] = np.asarray(rng.standard_normal(shape)).astype(NUMPY[a.dtype.name])
    return drawn


def _shape(a: Argument, m: int, n: int) -> tuple[int, ...]:
    columns = n if a.columns == WHOLE else n // 2
    return {"scalar": (), "row": (m,), "column": (columns,), "matrix": (m, columns)}[a.broadcast]


@dataclass
class OnDevice:
    """Arguments by name: scalars, addresses and strides; and the arrays as the device has them. Each ends with its last
    element, so that the emulator refuses whatever lies beyond, and NaN lies between the rows of a matrix."""

    values: dict[str, object]
    arrays: dict[str, np.ndarray]

    def reductions(self, f: Finish) -> dict[str, np.ndarray]:
        """What the kernel reduced to."""
        return {r.op: self.arrays[r.op] for r in f.reductions}


def on_device(f: Finish, drawn: dict[str, np.ndarray], device: Device, m: int, n: int) -> OnDevice:
    """Buffers for the arrays; the vectors that reductions go to start at zero."""
    made = OnDevice({}, {})
    for a in f.arguments:
        if a.broadcast == "scalar":
            made.values[a.name] = drawn[a.name]
            continue
        values = np.zeros(_shape(a, m, n), np.float32) if a.written else drawn[a.name]
        matrix = values if values.ndim == 2 else values[None, :]
        stride = matrix.shape[1] + PADDING
        padded = surrounded(matrix, stride).reshape(-1)
        made.arrays[a.name] = padded[: (len(matrix) - 1) * stride + matrix.shape[1]].copy()
        made.values[a.name] = device.buffer(made.arrays[a.name], a.name)
        if a.stride:
            made.values[a.stride] = stride
    return made


def struct(f: Finish, made: OnDevice, rows: int, columns: int) -> bytes:
    """`struct Epilogue` as the kernel takes it."""
    kinds = {"float ": np.float32, "int64_t ": np.int64}
    fields = [("rows", np.int32), ("columns", np.int32)]
    fields += [(name, kinds.get(ctype, np.uint64)) for ctype, name in members(f)]
    record = np.zeros((), np.dtype(fields, align=True))
    record["rows"], record["columns"] = rows, columns
    for name, value in made.values.items():
        record[name] = value
    return record.tobytes()


def apply(f: Finish | None, x: np.ndarray, drawn: dict[str, np.ndarray]) -> np.ndarray:
    """The steps on a whole product, in its own precision."""
    for step in f.steps if f else ():
        names = {"x": x}
        if step.pairs:
            names = {"x": x[:, 0::2], "y": x[:, 1::2]}
        x = _step(step, names, drawn).astype(x.dtype)
    return x


def _step(step: Step, names: dict[str, np.ndarray], drawn: dict[str, np.ndarray]) -> np.ndarray:
    real = names["x"].dtype
    for name, a in step.names.items():
        value = drawn[a.name].astype(real)
        names[name] = value[:, None] if a.broadcast == "row" else value
    code = written(step.tree, {name: name for name in names}, NUMPY_DIALECT)
    with np.errstate(all="ignore"):
        # The text is what this package wrote for an expression that it has parsed and checked.
        return np.broadcast_to(eval(code, {"np": np, "erf": _erf, "sigmoid": _sigmoid}, names), names["x"].shape)


def _erf(x: np.ndarray | float) -> np.ndarray:
    x = np.asarray(x)
    return np.vectorize(math.erf, otypes=[float])(x).astype(x.dtype)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def reduce(f: Finish | None, x: np.ndarray) -> dict[str, np.ndarray]:
    """Every reduction of finished elements, in their own precision."""
    found = {}
    for r in f.reductions if f else ():
        axis = 1 if r.along == "row" else 0
        found[r.op] = np.abs(x).max(axis) if r.how == "max_abs" else x.cumsum(axis).take(-1, axis)
    return found


def off(f: Finish | None, exact: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """How far each element of a plain computation is off, and how far the roundings of the steps alone may take it:
    where products and sums are exact, whose few roundings err less is chance."""
    roundings = f.roundings if f else 0
    return np.abs(plain - exact) + roundings * 2.0**-25 * np.abs(exact)


def errors(f: Finish | None, got: dict[str, np.ndarray], exact: np.ndarray, plain: np.ndarray) -> list[str]:
    """The reductions that err more than their elements may, twice as much as in the plain computation, and than sums in
    another order do: of N terms by about sqrt(N) roundings (Higham, "Accuracy and Stability", probabilistic bounds)."""
    wrong = []
    truth = reduce(f, exact)
    for r in f.reductions if f else ():
        error = float(np.max(np.abs(got[r.op].astype(np.float64) - truth[r.op])))
        limit = 2 * float(np.max(off(f, exact, plain)))
        if r.how == "sum":
            axis = 1 if r.along == "row" else 0
            limit = 2 * float(np.max(off(f, exact, plain).sum(axis)))
            limit += float(np.max(np.abs(exact).sum(axis))) * 2.0**-23 * exact.shape[axis] ** 0.5
        if not error <= limit:
            wrong.append(f"{r.op}: error {error:.3g}, limit {limit:.3g}")
    return wrong
