"""f16, bf16 and their packed pairs. PTX ISA §9.7.4.

Values are widened to f32, computed, and rounded once to the type (add, sub, mul: f32 holds products and sums of
two such numbers well enough that double rounding cannot happen for mul; sums go through float64 to be sure).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from kgen.emulator.isa.helpers import through
from kgen.errors import EmulatorError

TYPES = ("f16", "bf16", "f16x2", "bf16x2")
ELEMENT = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}
_NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
_OPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def numpy_type(type_: str):
    """The element type, float16 or bfloat16."""
    return _NUMPY[type_.removesuffix("x2")]


def widen(type_: str, codes):
    """float32 of the elements in uint16 or uint32 rows: [32] or [64]."""
    if type_.startswith("bf16"):
        return (codes.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return codes.view(np.uint16).view(np.float16).astype(np.float32)


def narrow(type_: str, values):
    """Codes of `values` (any float type), rounded to nearest even, as the row type of `type_`."""
    if type_.startswith("bf16") and values.dtype == np.float64:
        values = _odd_f32(values)
    codes = canonical(type_, values.astype(numpy_type(type_)).view(np.uint16))
    return codes.view(np.uint32) if type_.endswith("x2") else codes


def canonical(type_: str, codes):
    """The codes (uint16) with every NaN 0x7fff, as PTX ISA §9.7.4 and §9.7.9.21 have it; changed in place."""
    size = codes & np.uint16(0x7FFF)
    top = 0x7F80 if type_.startswith("bf16") else 0x7C00
    if int(size.max()) > top:
        codes[size > top] = 0x7FFF
    return codes


def _odd_f32(values):
    """float64 to f32 rounded to odd, since the library's own way to bfloat16 rounds twice."""
    near = values.astype(np.float32)
    back = near.astype(np.float64)
    inexact = np.isfinite(near) & (back != values) & ((near.view(np.uint32) & 1) == 0)
    if inexact.any():
        near = np.where(inexact, np.nextafter(near, np.where(back < values, np.inf, -np.inf).astype(np.float32)), near)
    return near


def _flush(type_: str, x):
    """Subnormals to zero of the same sign."""
    smallest = 2.0**-14 if type_.startswith("f16") else 2.0**-126
    return np.where(np.abs(x) < smallest, np.copysign(x.dtype.type(0), x), x)


def _reader(type_: str, ftz: bool):
    """Codes to float32 operands."""
    return (lambda p: _flush(type_, widen(type_, p))) if ftz else (lambda p: widen(type_, p))


def _finish(type_, ftz, sat, relu=False):
    def f(r):
        if ftz:
            r = _flush(type_, r)
        if sat:
            r = np.where(r > 0, np.minimum(r, r.dtype.type(1)), r.dtype.type(0))  # NaN and -0 are +0
        if relu:
            r = np.where((r > 0) | np.isnan(r), r, 0)
        return narrow(type_, r)

    return f


def arithmetic(b, inst, mods, type_):
    """add, sub, mul."""
    ufunc = _OPS[inst.op]
    mods.flag("rn")
    ftz = mods.flag("ftz")
    read, finish = _reader(type_, ftz), _finish(type_, ftz, mods.flag("sat"))
    e = ELEMENT[type_]
    d, x, y = (inst.operands[0], *inst.operands[1:])

    def f(p, q):
        return finish(ufunc(read(p).astype(np.float64), read(q)))

    return through(f, b.dst(d, e), b.src(x, e), b.src(y, e))


def fma(b, inst, mods, type_):
    """fma: products are exact in float64, and so are sums unless exponents lie 40 apart, where rn is the same."""
    mods.flag("rn")
    ftz = mods.flag("ftz")
    read, finish = _reader(type_, ftz), _finish(type_, ftz, mods.flag("sat"), mods.flag("relu"))
    if mods.flag("oob"):
        raise EmulatorError("fma.oob is not modelled")
    e = ELEMENT[type_]

    def f(p, q, r):
        from kgen.emulator.isa.floating import to_odd_sum

        product = read(p).astype(np.float64) * read(q)
        return finish(to_odd_sum(product, read(r).astype(np.float64)))

    return through(f, b.dst(inst.operands[0], e), *(b.src(x, e) for x in inst.operands[1:]))


def min_max(b, inst, mods, type_, ufunc, nan, xorsign):
    """min, max. .xorsign.abs compares magnitudes and takes its sign from both operands, a NaN among them too."""
    from kgen.emulator.isa.floating import pick

    ftz = mods.flag("ftz")
    read, finish = _reader(type_, ftz), _finish(type_, ftz, False)
    e = ELEMENT[type_]

    def f(p, q):
        p, q = read(p), read(q)
        if not xorsign:
            return finish(pick(ufunc, p, q, nan))
        r = pick(ufunc, np.abs(p), np.abs(q), nan)
        return finish(np.where(np.signbit(p) ^ np.signbit(q), -r, r))

    return through(f, b.dst(inst.operands[0], e), b.src(inst.operands[1], e), b.src(inst.operands[2], e))


def sign(b, inst, type_, ftz: bool):
    """neg, abs: on the sign bits alone, except that NaN is 0x7fff."""
    e = ELEMENT[type_]
    ufunc, bits = (np.bitwise_xor, 0x8000) if inst.op == "neg" else (np.bitwise_and, 0x7FFF)
    smallest = np.uint16(0x80 if type_.startswith("bf16") else 0x400)  # of the normal numbers

    def f(p):
        codes = canonical(type_, ufunc(np.ascontiguousarray(p).view(np.uint16), np.uint16(bits)))
        if ftz:
            codes = np.where(codes & np.uint16(0x7FFF) < smallest, codes & np.uint16(0x8000), codes)
        return codes.view(p.dtype)

    return through(f, b.dst(inst.operands[0], e), b.src(inst.operands[1], e))


def function(b, inst, type_, core):
    """ex2, tanh, rcp ... of half types."""
    e = ELEMENT[type_]
    f = lambda p: narrow(type_, core(widen(type_, p).astype(np.float64)))  # noqa: E731
    return through(f, b.dst(inst.operands[0], e), b.src(inst.operands[1], e))
