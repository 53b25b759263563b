"""Integer arithmetic. PTX ISA §9.7.1, §9.7.2."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.helpers import apply, ternary, through, unary
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
PACKED = ("u16x2", "s16x2")


def is_integer(name: str) -> bool:
    """True for the types of integer arithmetic."""
    return name in INTEGERS


def wide(type_: str) -> str:
    """The type of twice the width."""
    return type_[0] + str(2 * int(type_[1:]))


def high_half(a, b):
    """Upper half of the product of two integer arrays of one type."""
    if a.dtype.itemsize < 8:
        double = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (a.astype(double) * b >> 8 * a.dtype.itemsize).astype(a.dtype)
    bits = [int(x) * int(y) >> 64 & 0xFFFFFFFFFFFFFFFF for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array(bits, np.uint64).view(a.dtype)


def add_sub(b, inst, mods, ufunc):
    """Integer add or sub, with saturation and carry."""
    type_ = mods.last()
    sat, cc = mods.flag("sat"), mods.flag("cc")
    d, x, y = inst.operands
    if type_ in PACKED:
        return _packed(b, inst, ufunc, type_)
    d, x, y = b.dst(d, type_), b.src(x, type_), b.src(y, type_)
    if sat:
        return through(lambda p, q: np.clip(ufunc(p.astype(np.int64), q), -(2**31), 2**31 - 1), d, x, y)
    if cc:
        return _carry(ufunc is np.subtract, d, x, y, first=True, keep=True)
    return apply(ufunc, d, x, y)


def _packed(b, inst, ufunc, type_):
    lane = {"u": np.uint16, "s": np.int16}[type_[0]]
    d, x, y = b.dst(inst.operands[0], "b32"), b.src(inst.operands[1], "b32"), b.src(inst.operands[2], "b32")
    return through(lambda p, q: ufunc(p.view(lane), q.view(lane)).view(np.uint32), d, x, y)


def _carry(subtract: bool, d, x, y, first: bool, keep: bool):
    return lambda w, m: _add_carry(w, m, subtract, d, w.v[x], w.v[y], first, keep)


def _add_carry(w, m, subtract: bool, d: int, a, c, first: bool, keep: bool) -> None:
    """d = a + c + carry or a - c - carry of rows; first: the carry in is 0; keep: it is written."""
    v = w.v
    a, c = a.view(f"u{a.itemsize}"), c.view(f"u{c.itemsize}")
    carry = np.zeros(32, a.dtype) if first or not hasattr(w, "carry") else w.carry.astype(a.dtype)
    if subtract:
        r = a - c - carry
        out = (a < c) | ((a == c) & (carry > 0))
    else:
        r = a + c + carry
        out = (r < a) | ((r == a) & (carry > 0))
    np.copyto(v[d], r.view(v[d].dtype), where=m)
    if keep:
        if not hasattr(w, "carry"):
            w.carry = np.zeros(32, bool)
        np.copyto(w.carry, out, where=m)


@op("addc", "subc")
def addc(b, inst, mods):
    type_ = mods.last()
    d, x, y = inst.operands
    return _carry(inst.op == "subc", b.dst(d, type_), b.src(x, type_), b.src(y, type_), False, mods.flag("cc"))


def mul_parts(b, inst, mods, type_):
    """mul.lo/hi/wide of integers."""
    part = mods.need("lo", "hi", "wide")
    d, x, y = inst.operands[:3]
    if part == "wide":
        big = wide(type_)
        d, x, y = b.dst(d, big), b.src(x, type_), b.src(y, type_)
        dtype = np.dtype(f"{'i' if type_[0] == 's' else 'u'}{int(big[1:]) // 8}")

        return through(lambda p, q: np.multiply(p, q, dtype=dtype), d, x, y)
    d, x, y = b.dst(d, type_), b.src(x, type_), b.src(y, type_)
    return apply(np.multiply, d, x, y) if part == "lo" else through(high_half, d, x, y)


def mad_parts(b, inst, mods, type_):
    """mad.lo/hi/wide of integers."""
    part = mods.need("lo", "hi", "wide")
    sat, cc = mods.flag("sat"), mods.flag("cc")
    d, x, y, z = inst.operands
    if cc:
        return _multiply_carry(b, inst, type_, part, True, True)
    if sat:
        if part != "hi" or type_ != "s32":
            raise EmulatorError(f"{inst.name}: .sat is for mad.hi.s32")
        clip = lambda p, q, r: np.clip(high_half(p, q).astype(np.int64) + r, -(2**31), 2**31 - 1)  # noqa: E731
        return ternary(clip, b.dst(d, type_), b.src(x, type_), b.src(y, type_), b.src(z, type_))
    out = wide(type_) if part == "wide" else type_
    d, x, y, z = b.dst(d, out), b.src(x, type_), b.src(y, type_), b.src(z, out)
    if part == "wide":
        return ternary(lambda p, q, r: np.multiply(p, q, dtype=r.dtype) + r, d, x, y, z)
    if part == "hi":
        return ternary(lambda p, q, r: high_half(p, q) + r, d, x, y, z)
    return ternary(lambda p, q, r: p * q + r, d, x, y, z)


def _multiply_carry(b, inst, type_, part, first, keep):
    """mad.cc, madc: half of the product, plus c and the carry. PTX ISA §9.7.2.5-6."""
    if part == "wide" or type_[1:] == "16":
        raise EmulatorError(f"{inst.name} does not exist")
    d, x, y, z = inst.operands
    d, x, y, z = b.dst(d, type_), b.src(x, type_), b.src(y, type_), b.src(z, type_)
    product = np.multiply if part == "lo" else high_half

    def fn(w, m):
        v = w.v
        _add_carry(w, m, False, d, product(v[x], v[y]), v[z], first, keep)

    return fn


@op("madc")
def madc(b, inst, mods):
    type_ = mods.last()
    return _multiply_carry(b, inst, type_, mods.need("lo", "hi"), False, mods.flag("cc"))


@op("mul24", "mad24")
def mul24(b, inst, mods):
    type_ = mods.last()
    part = mods.need("lo", "hi")
    slots = [b.src(x, type_) for x in inst.operands[1:]]

    def low24(p):
        return (p << 8 >> 8).astype(np.int64)

    def f(p, q, r=0):
        product = low24(p) * low24(q)
        return (product if part == "lo" else product >> 16).astype(p.dtype) + r

    return through(f, b.dst(inst.operands[0], type_), *slots)


def _quotient(p, q):
    """Division toward zero; by zero: all ones (the hardware's habit, the document leaves it open)."""
    safe = np.where(q == 0, q.dtype.type(1), q)
    if p.dtype.kind == "u":
        r = p // safe
    else:
        low = np.iinfo(p.dtype).min
        overflow = (p == low) & (safe == -1)
        safe = np.where(overflow, p.dtype.type(1), safe)
        r = p // safe
        r = r + ((r < 0) & (r * safe != p))
    return np.where(q == 0, np.array(-1).astype(p.dtype), r)


def _remainder(p, q):
    return np.where(q == 0, p, p - _quotient(p, q) * q)


def divide(b, inst, mods, type_):
    """div of integers."""
    d, x, y = inst.operands
    return through(_quotient, b.dst(d, type_), b.src(x, type_), b.src(y, type_))


@op("rem")
def rem(b, inst, mods):
    type_ = mods.last()
    d, x, y = inst.operands
    return through(_remainder, b.dst(d, type_), b.src(x, type_), b.src(y, type_))


def min_max(b, inst, mods, type_, ufunc):
    """min or max of integers."""
    relu = mods.flag("relu")
    d, x, y = inst.operands
    if type_ in PACKED:
        return _packed(b, inst, ufunc, type_)
    d, x, y = b.dst(d, type_), b.src(x, type_), b.src(y, type_)
    return through(lambda p, q: np.maximum(ufunc(p, q), 0), d, x, y) if relu else apply(ufunc, d, x, y)


def negate(b, inst, type_):
    """neg of integers."""
    return unary(np.negative, b.dst(inst.operands[0], type_), b.src(inst.operands[1], type_))


def absolute(b, inst, type_):
    """abs of integers."""
    return unary(np.absolute, b.dst(inst.operands[0], type_), b.src(inst.operands[1], type_))


@op("sad")
def sad(b, inst, mods):
    type_ = mods.last()
    d, x, y, z = inst.operands
    d, x, y, z = b.dst(d, type_), b.src(x, type_), b.src(y, type_), b.src(z, type_)
    return ternary(lambda p, q, r: np.maximum(p, q) - np.minimum(p, q) + r, d, x, y, z)


@op("dp4a", "dp2a")
def dot(b, inst, mods):
    tb, ta = mods.last(), mods.last()
    part = mods.choose("lo", "hi")
    d, x, y, z = inst.operands
    out = "u32" if ta == tb == "u32" else "s32"
    d, x, y, z = b.dst(d, out), b.src(x, "b32"), b.src(y, "b32"), b.src(z, out)
    bytes_ = {"u32": np.uint8, "s32": np.int8}

    def f(p, q, r):
        qs = q.view(bytes_[tb]).reshape(-1, 4).astype(np.int64)
        if part:
            ps = p.view({"u32": np.uint16, "s32": np.int16}[ta]).reshape(-1, 2).astype(np.int64)
            qs = qs[:, 2:] if part == "hi" else qs[:, :2]
        else:
            ps = p.view(bytes_[ta]).reshape(-1, 4).astype(np.int64)
        return ((ps * qs).sum(1) + r).astype(np.int64)

    return ternary(f, d, x, y, z)
