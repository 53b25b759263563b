"""The operations of cp.reduce.async.bulk and its tensor form, element by element. PTX ISA 9.7.9.25.5.

f16 and bf16 additions round to nearest even; f32 additions flush subnormal inputs and results to zero of
the same sign; min and max of f16 and bf16 return the number when one operand is NaN.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator import formats
from kgen.errors import EmulatorError

_INTEGERS = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64}
_FLOATS = {"f32": np.float32, "f64": np.float64}
_HALVES = {"f16": formats.F16, "bf16": formats.BF16}
# op: element types, from the document's table for global destinations (a superset of the shared ones)
TYPES = {
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
SHARED_TYPES = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip


def check(op: str, kind: str, shared: bool = False) -> None:
    """EmulatorError if the combination does not exist. shared: into shared::cluster."""
    table = SHARED_TYPES if shared else TYPES
    if kind not in table.get(op, ()):
        raise EmulatorError(f"bulk reduction .{op}.{kind} does not exist")


def reduce(op: str, kind: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """uint8 arrays of equal shape (last axis a whole number of elements): old op new."""
    check(op, kind)
    old, new = np.ascontiguousarray(old), np.ascontiguousarray(new)
    if kind in _HALVES:
        return _half(op, _HALVES[kind], old.view(np.uint16), new.view(np.uint16)).view(np.uint8)
    dtype = _INTEGERS.get(kind) or _FLOATS[kind]
    a, b = old.view(dtype), new.view(dtype)
    if kind == "f32":
        return _flush(_flush(a) + _flush(b)).view(np.uint8)
    with np.errstate(over="ignore"):
        result = {
            "add": lambda: a + b,
            "min": lambda: np.minimum(a, b),
            "max": lambda: np.maximum(a, b),
            "inc": lambda: np.where(a >= b, 0, a + 1),
            "dec": lambda: np.where((a == 0) | (a > b), b, a - 1),
            "and": lambda: a & b,
            "or": lambda: a | b,
            "xor": lambda: a ^ b,
        }[op]()
    return np.ascontiguousarray(result.astype(dtype)).view(np.uint8)


def _flush(values: np.ndarray) -> np.ndarray:
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), values), values).astype(np.float32)


def _half(op: str, fmt: formats.Format, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    a, b = formats.decode(old, fmt), formats.decode(new, fmt)
    with np.errstate(invalid="ignore"):
        result = {"add": np.add, "min": np.fmin, "max": np.fmax}[op](a, b)
    return formats.encode(result, fmt)
