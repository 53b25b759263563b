"""add, sub, mul, mad, fma, div, min, max, neg, abs by type, and the float-only functions. PTX ISA §9.7.1, §9.7.3.

f32 results are float64 results rounded once (exact for add, sub, mul; div and sqrt as well, since float64 holds
more than twice the bits). fma is done exactly: see `fused`. The .approx functions are float64 functions rounded
to f32: within the document's bounds, not bit for bit what the hardware gives.

Whatever the NaN that comes in, f32 arithmetic gives 0x7fffffff; f64 arithmetic keeps sign and payload.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa import exact, half, integer
from kgen.emulator.isa.helpers import apply, through, unary
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

ROUNDINGS = ("rn", "rz", "rm", "rp")
_TINY = np.float32(2.0**-126)
_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_OPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_EXACT = {"add": exact.add, "sub": exact.subtract, "mul": exact.multiply}


def flush(x):
    """Subnormal f32 to zero of the same sign."""
    return np.where(np.abs(x) < _TINY, np.copysign(np.float32(0), x), x)


def one_nan(r):
    """f32 results with every NaN 0x7fffffff; changed in place."""
    # The sum of squares is NaN just if one of them is, and cheaper than asking each.
    if (total := r.dot(r)) != total:
        r[np.isnan(r)] = _NAN
    return r


def saturate(r):
    """To 0..1; NaN and -0 are +0."""
    return np.where(r > 0, np.minimum(r, r.dtype.type(1)), r.dtype.type(0))


def round_f32(exact, mode: str):
    """float64 values to f32 by rn, rz, rm or rp."""
    near = exact.astype(np.float32)
    if mode == "rn":
        return near
    back = near.astype(np.float64)
    down, up = np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))
    finite = np.isfinite(exact)
    if mode == "rm":
        return np.where(finite & (back > exact), down, near)
    if mode == "rp":
        return np.where(finite & (back < exact), up, near)
    r = np.where(back > exact, down, near)
    r = np.where(finite & (exact > 0) & (back > exact), down, near)
    return np.where(finite & (exact < 0) & (back < exact), up, r)


def to_odd_sum(p, c, mode: str = "rn"):
    """p + c in float64, rounded to odd, so that one more rounding to f32 is right (Boldo and Melquiond).

    The mode decides only the sign of an exact zero: negative when rounding down, unless both terms are +0.
    """
    s = p + c
    if mode == "rm":
        s = np.where((s == 0) & (np.signbit(p) | np.signbit(c)), -0.0, s)
    bb = s - p
    err = (p - (s - bb)) + (c - bb)
    bits = s.view(np.int64)
    even = (bits & 1) == 0
    fix = np.isfinite(s) & (err != 0) & even
    if fix.any():
        toward = np.where(err > 0, np.inf, -np.inf)
        s = np.where(fix, np.nextafter(s, toward), s)
    return s


def fused(a, b, c, mode: str = "rn"):
    """fma of f32: the product is exact in float64, the sum is rounded to odd before the final rounding."""
    product, c = a.astype(np.float64) * b, c.astype(np.float64)
    if mode == "rn":
        total = product + c
        # Rounding twice is wrong only where the first result is a tie of the second, or its ties lie elsewhere.
        tie = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
        if not (tie | (np.abs(total) < _TINY)).any():
            return total.astype(np.float32)
    return round_f32(to_odd_sum(product, c, mode), mode)


def _f32_function(mods, f, arity_modes=True):
    """Wraps f(values..., mode) with .ftz, .sat and the one NaN."""
    mode = mods.choose(*ROUNDINGS) or "rn"
    ftz, sat = mods.flag("ftz"), mods.flag("sat")
    if not (ftz or sat):
        return lambda *x: one_nan(f(*x, mode))

    def wrapped(*x):
        if ftz:
            x = tuple(flush(v) for v in x)
        r = f(*x, mode)
        if ftz:
            r = flush(r)
        return saturate(r) if sat else one_nan(r)

    return wrapped


def _basic(ufunc, mode):
    if mode == "rn":
        return ufunc
    if ufunc is np.multiply:
        return lambda a, b: round_f32(a.astype(np.float64) * b, mode)
    sign = -1.0 if ufunc is np.subtract else 1.0
    return lambda a, b: round_f32(to_odd_sum(a.astype(np.float64), sign * b.astype(np.float64), mode), mode)


def _plain(ufunc, d: int, x: int, y: int):
    """d = ufunc(x, y) of f32 rows."""
    return through(lambda p, q: one_nan(ufunc(p, q)), d, x, y)


def _packed(f):
    """f over both halves of f32x2 registers, taken as uint64 rows."""

    def g(*x):
        return np.ascontiguousarray(f(*(v.view(np.float32) for v in x)), np.float32).view(np.uint64)

    return g


@op("add", "sub", "mul")
def arithmetic(b, inst, mods):
    type_ = mods.last()
    ufunc = _OPS[inst.op]
    d, x, y = inst.operands[:3]
    if integer.is_integer(type_) or type_ in integer.PACKED:
        return integer.mul_parts(b, inst, mods, type_) if inst.op == "mul" else _integer(b, inst, mods, type_)
    if type_ in half.TYPES:
        if mods.left and mods.left[-1] == "f32":  # add.rn.f32.bf16: mixed
            mods.last()
            mods.need("rn")
            d, x, y = b.dst(d, "f32"), b.src(x, half.ELEMENT[type_]), b.src(y, "f32")
            return through(lambda p, q: one_nan(ufunc(half.widen(type_, p), q)), d, x, y)
        return half.arithmetic(b, inst, mods, type_)
    if type_ in ("f32", "f32x2"):
        plain = not set(mods.left) & {"ftz", "sat", "rz", "rm", "rp"}
        mode = mods.choose(*ROUNDINGS) or "rn"
        core = _basic(ufunc, mode)
        f = _f32_function(mods, lambda p, q, _: core(p, q))
        if type_ == "f32x2":
            return through(_packed(f), b.dst(d, "b64"), b.src(x, "b64"), b.src(y, "b64"))
        d, x, y = b.dst(d, "f32"), b.src(x, "f32"), b.src(y, "f32")
        return _plain(ufunc, d, x, y) if plain else through(f, d, x, y)
    if type_ == "f64":
        mode = mods.choose(*ROUNDINGS) or "rn"
        d, x, y = b.dst(d, "f64"), b.src(x, "f64"), b.src(y, "f64")
        return apply(ufunc, d, x, y) if mode == "rn" else through(exact.lanes(_EXACT[inst.op], mode), d, x, y)
    raise EmulatorError(f"{inst.op} of .{type_} is not modelled")


def _integer(b, inst, mods, type_):
    mods.left.append(type_)
    return integer.add_sub(b, inst, mods, _OPS[inst.op])


@op("fma", "mad")
def fma(b, inst, mods):
    type_ = mods.last()
    if integer.is_integer(type_):
        return integer.mad_parts(b, inst, mods, type_)
    d, x, y, z = inst.operands
    if type_ in half.TYPES:
        if mods.left and mods.left[-1] == "f32":
            mods.last()
            mods.need("rn")
            e = half.ELEMENT[type_]
            d, x, y, z = b.dst(d, "f32"), b.src(x, e), b.src(y, e), b.src(z, "f32")
            return through(lambda p, q, r: one_nan(fused(half.widen(type_, p), half.widen(type_, q), r)), d, x, y, z)
        return half.fma(b, inst, mods, type_)
    if type_ == "f64":
        f = exact.lanes(exact.fused, mods.need(*ROUNDINGS))
        return through(f, b.dst(d, "f64"), b.src(x, "f64"), b.src(y, "f64"), b.src(z, "f64"))
    f = _f32_function(mods, fused)
    if type_ == "f32x2":
        return through(_packed(f), b.dst(d, "b64"), b.src(x, "b64"), b.src(y, "b64"), b.src(z, "b64"))
    return through(f, b.dst(d, "f32"), b.src(x, "f32"), b.src(y, "f32"), b.src(z, "f32"))


@op("div")
def div(b, inst, mods):
    type_ = mods.last()
    if integer.is_integer(type_):
        return integer.divide(b, inst, mods, type_)
    d, x, y = inst.operands
    mods.flag("approx", "full")
    if type_ == "f64":
        mode = mods.need(*ROUNDINGS)
        d, x, y = b.dst(d, "f64"), b.src(x, "f64"), b.src(y, "f64")
        return apply(np.divide, d, x, y) if mode == "rn" else through(exact.lanes(exact.divide, mode), d, x, y)
    f = _f32_function(mods, lambda p, q, mode: round_f32(p.astype(np.float64) / q, mode))
    return through(f, b.dst(d, "f32"), b.src(x, "f32"), b.src(y, "f32"))


def pick(ufunc, a, b, nan: bool, xorsign: bool = False):
    """min or max: the number beats the NaN, unless .NaN; -0 < +0. PTX ISA §9.7.3.10."""
    both = ufunc(a, b)
    zero = (a == 0) & (b == 0)
    if zero.any():
        sign = np.signbit(a) & np.signbit(b) if ufunc is np.maximum else np.signbit(a) | np.signbit(b)
        both = np.where(zero, np.where(sign, a.dtype.type(-0.0), a.dtype.type(0.0)), both)
    if not nan:
        both = np.where(np.isnan(a), b, np.where(np.isnan(b), a, both))
    return both


@op("min", "max")
def min_max(b, inst, mods):
    type_ = mods.last()
    ufunc = np.minimum if inst.op == "min" else np.maximum
    if integer.is_integer(type_) or type_ in integer.PACKED:
        return integer.min_max(b, inst, mods, type_, ufunc)
    nan, absolute = mods.flag("NaN"), mods.flag("abs")
    xorsign = mods.flag("xorsign")
    if type_ in half.TYPES:
        return half.min_max(b, inst, mods, type_, ufunc, nan, xorsign)

    def pure(*x):
        if xorsign:
            sign = np.signbit(x[0]) ^ np.signbit(x[1])
        if absolute or xorsign:
            x = [np.abs(v) for v in x]
        r = x[0]
        for v in x[1:]:
            r = pick(ufunc, r, v, nan)
        return np.where(sign, -r, r) if xorsign else r

    f = _f32_function(mods, lambda *x: pure(*x[:-1])) if type_ == "f32" else pure
    return through(f, b.dst(inst.operands[0], type_), *(b.src(x, type_) for x in inst.operands[1:]))


@op("neg", "abs")
def sign(b, inst, mods):
    type_ = mods.last()
    if integer.is_integer(type_):
        return integer.negate(b, inst, type_) if inst.op == "neg" else integer.absolute(b, inst, type_)
    if type_ in half.TYPES:
        return half.sign(b, inst, type_, mods.flag("ftz"))
    ufunc = np.negative if inst.op == "neg" else np.absolute
    d, x = b.dst(inst.operands[0], type_), b.src(inst.operands[1], type_)
    if mods.flag("ftz"):
        return through(lambda p: flush(ufunc(p)), d, x)
    return unary(ufunc, d, x)


_FUNCTIONS = {
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
_DIRECTED = {"rcp": exact.reciprocal, "sqrt": exact.root}  # of f64


@op(*_FUNCTIONS)
def function(b, inst, mods):
    type_ = mods.last()
    core = _FUNCTIONS[inst.op]
    mods.flag("approx")
    d, x = inst.operands
    if type_ in half.TYPES:
        mods.flag("ftz")
        return half.function(b, inst, type_, core)
    if type_ == "f64":
        mods.flag("ftz")
        mode = mods.choose(*ROUNDINGS) or "rn"
        f = core if mode == "rn" else exact.lanes(_DIRECTED[inst.op], mode)
        return through(f, b.dst(d, "f64"), b.src(x, "f64"))
    f = _f32_function(mods, lambda p, mode: round_f32(core(p.astype(np.float64)), mode))
    return through(f, b.dst(d, "f32"), b.src(x, "f32"))


@op("copysign")
def copysign(b, inst, mods):
    type_ = mods.last()
    d, x, y = inst.operands  # the sign of a, the magnitude of b
    return through(lambda p, q: np.copysign(q, p), b.dst(d, type_), b.src(x, type_), b.src(y, type_))


@op("testp")
def testp(b, inst, mods):
    type_ = mods.last()
    tests = {
        "finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda x: ~np.isnan(x),
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
        "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
    }  # fmt: skip
    return through(tests[mods.need(*tests)], b.dst(inst.operands[0], "pred"), b.src(inst.operands[1], type_))
