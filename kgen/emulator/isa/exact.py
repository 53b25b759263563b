"""Results rounded once, in any direction, of exact arithmetic. PTX ISA §9.7.3 (.rn .rz .rm .rp of f64), §9.7.9.21.

f64 has no wider type to compute in, so the directed modes go through rationals; they are rare and may be slow.
A NaN operand comes out quiet, with its sign and payload.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

__all__ = [
    "add", "divide", "fused", "integer_to_f64", "lanes", "multiply", "odd_f64", "reciprocal", "root", "subtract",
    "to_integer",
]  # fmt: skip


def _round(exact: Fraction, mode: str) -> float:
    """A nonzero rational to f64."""
    try:
        near = float(exact)
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if mode == "rn":
        return near
    if mode == "rz":
        mode = "rm" if exact > 0 else "rp"
    # An infinite `near` compares as what it stands for: beyond every finite number.
    above = near > 0 if math.isinf(near) else Fraction(near) > exact
    below = near < 0 if math.isinf(near) else Fraction(near) < exact
    if mode == "rm":
        return math.nextafter(near, -math.inf) if above else near
    return math.nextafter(near, math.inf) if below else near


def _sum_of_zero(plain: float, x: float, y: float, mode: str) -> float:
    """An exact zero sum: -0 when rounding down, unless both terms are the same zero (IEEE 754 §6.3)."""
    if x == 0 and y == 0 and math.copysign(1, x) == math.copysign(1, y):
        return plain
    return -0.0 if mode == "rm" else 0.0


def add(x: float, y: float, mode: str) -> float:
    """x + y."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    exact = Fraction(x) + Fraction(y)
    return _round(exact, mode) if exact else _sum_of_zero(x + y, x, y, mode)


def subtract(x: float, y: float, mode: str) -> float:
    """x - y. A NaN keeps its sign."""
    return add(x, y if math.isnan(y) else -y, mode)


def multiply(x: float, y: float, mode: str) -> float:
    """x * y."""
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y
    return _round(Fraction(x) * Fraction(y), mode)


def divide(x: float, y: float, mode: str) -> float:
    """x / y."""
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return float(np.float64(x) / np.float64(y))
    return _round(Fraction(x) / Fraction(y), mode)


def reciprocal(x: float, mode: str) -> float:
    """1 / x."""
    return divide(1.0, x, mode)


def root(x: float, mode: str) -> float:
    """The square root of x."""
    near = float(np.sqrt(np.float64(x)))
    if not math.isfinite(near) or x == 0 or mode == "rn":
        return near
    # The root itself may be irrational, so squares are compared.
    square, exact = Fraction(near) ** 2, Fraction(x)
    if mode == "rp":
        return math.nextafter(near, math.inf) if square < exact else near
    return math.nextafter(near, 0.0) if square > exact else near


def fused(x: float, y: float, z: float, mode: str) -> float:
    """x * y + z."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z + z  # infinite, or a quiet NaN
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact:
        return _round(exact, mode)
    product = math.copysign(0.0 if x == 0 or y == 0 else 1.0, math.copysign(1, x) * math.copysign(1, y))
    return _sum_of_zero(product + z, product, z, mode)


def lanes(f, mode: str):
    """f(*floats, mode) over the lanes of f64 rows."""
    return lambda *rows: np.array([f(*x, mode) for x in zip(*(r.tolist() for r in rows), strict=True)], np.float64)


def integer_to_f64(values, mode: str):
    """f64 of integers of up to 64 bits."""
    if mode == "rn" or values.dtype.itemsize < 8:
        return values.astype(np.float64)
    return np.array([_round(Fraction(v), mode) if v else 0.0 for v in values.tolist()], np.float64)


def odd_f64(values):
    """f64 of integers, rounded to odd: one more rounding, to f32 or less, is then right in every mode."""
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    negative = values < 0
    size = np.where(negative, -values, values).view(np.uint64)
    # 53 of up to 64 bits fit; the last of them takes up whether any of the lost ones is set.
    kept = size & ~np.uint64(0x7FF) | ((size & np.uint64(0x7FF)) != 0).astype(np.uint64) << np.uint64(11)
    r = np.where(size >> np.uint64(53) > 0, kept, size).astype(np.float64)
    return np.where(negative, -r, r)


def to_integer(values, dtype, from_f64: bool):
    """Whole f64 values to an integer type: out of range goes to its ends.

    NaN of the shorter float types is 0 in types of up to 32 bits (the document says so). In 64 bits, and from f64
    always, it is the integer's highest bit alone: what the hardware gives and the document does not say.
    """
    info = np.iinfo(dtype)
    top = float(info.max) if info.bits < 64 else 2.0 ** (64 - (info.kind == "i"))
    nan = np.isnan(values)
    over, under = values >= top, values <= info.min
    r = np.where(nan | over | under, 0.0, values).astype(dtype)
    r = np.where(over, dtype.type(info.max), np.where(under, dtype.type(info.min), r))
    if info.bits == 64 or from_f64:
        return np.where(nan, dtype.type(info.min if info.kind == "i" else 1 << (info.bits - 1)), r)
    return r
