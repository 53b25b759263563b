"""Logic, shifts and bit fields. PTX ISA §9.7.1, §9.7.8."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.helpers import apply, several, ternary, through, unary
from kgen.emulator.operands import Imm, Pair, Reg
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_BOOL = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _maybe_negated(b, x):
    """(slot, negated) of a predicate source, which may be written !p."""
    return b.src(x, "pred"), isinstance(x, Reg) and x.negated


@op("and", "or", "xor")
def logic(b, inst, mods):
    type_ = mods.last()
    d, x, y = inst.operands
    if type_ == "pred":
        (x, nx), (y, ny) = _maybe_negated(b, x), _maybe_negated(b, y)
        if nx or ny:
            f = _BOOL[inst.op]
            return through(lambda p, q: f(p ^ nx, q ^ ny), b.dst(d, type_), x, y)
        return apply(_BOOL[inst.op], b.dst(d, type_), x, y)
    return apply(_LOGIC[inst.op], b.dst(d, type_), b.src(x, type_), b.src(y, type_))


@op("not")
def invert(b, inst, mods):
    type_ = mods.last()
    d, x = b.dst(inst.operands[0], type_), b.src(inst.operands[1], type_)
    return unary(np.logical_not if type_ == "pred" else np.invert, d, x)


@op("cnot")
def cnot(b, inst, mods):
    type_ = mods.last()
    return through(lambda p: p == 0, b.dst(inst.operands[0], type_), b.src(inst.operands[1], type_))


def shift(name: str, a, n, bits: int):
    """a << n or a >> n of arrays, amounts above the width clamped (PTX ISA §9.7.8.7)."""
    if name == "shr" and a.dtype.kind == "i":
        return a >> np.minimum(n, bits - 1).astype(a.dtype)
    small = n < bits
    amount = np.where(small, n, 0).astype(a.dtype)
    r = a << amount if name == "shl" else a >> amount
    return np.where(small, r, a.dtype.type(0))


@op("shl", "shr")
def shl_shr(b, inst, mods):
    type_ = mods.last()
    d, x, n = inst.operands
    bits = int(type_[1:])
    signed = type_[0] == "s" and inst.op == "shr"
    work = ("s" if signed else "u") + str(bits)
    out, x = b.dst(d, work), b.src(x, work)
    if isinstance(n, Imm):
        amount = n.value & 0xFFFFFFFF
        if amount >= bits:
            if not signed:
                zero = b.const(0, f"u{bits // 8}")
                return apply(np.bitwise_and, out, x, zero)
            amount = bits - 1
        k = b.const(amount, f"{'i' if signed else 'u'}{bits // 8}")
        return apply(np.left_shift if inst.op == "shl" else np.right_shift, out, x, k)
    name = inst.op
    return through(lambda p, q: shift(name, p, q, bits), out, x, b.src(n, "u32"))


@op("shf")
def shf(b, inst, mods):
    type_ = mods.last()
    left = mods.need("l", "r") == "l"
    wrap = mods.need("wrap", "clamp") == "wrap"
    d, low, high, n = inst.operands

    def f(lo, hi, c):
        c = (c & 31 if wrap else np.minimum(c, 32)).astype(np.uint64)
        both = hi.astype(np.uint64) << np.uint64(32) | lo
        return (both << c >> np.uint64(32) if left else both >> c).astype(np.uint32)

    def clamped_left(lo, hi, c):
        # A left shift by 32 gives the low word; both << 32 >> 32 does just that.
        return f(lo, hi, c)

    fn = clamped_left if left else f
    return ternary(fn, b.dst(d, type_), b.src(low, "b32"), b.src(high, "b32"), b.src(n, "u32"))


@op("bfe")
def bfe(b, inst, mods):
    type_ = mods.last()
    bits, signed = int(type_[1:]), type_[0] == "s"
    d, a, pos, length = inst.operands

    def f(x, p, n):
        out = []
        for value, at, count in zip(x.tolist(), (p & 255).tolist(), (n & 255).tolist(), strict=True):
            raw = value & ((1 << bits) - 1)
            field = raw >> at & ((1 << count) - 1)
            if signed and count:
                sign = raw >> min(at + count - 1, bits - 1) & 1
                present = max(0, min(count, bits - at))
                if sign:
                    field |= -1 << present
            out.append(field & ((1 << bits) - 1))
        return np.array(out, np.uint64).astype(f"u{bits // 8}").view(x.dtype)

    return ternary(f, b.dst(d, type_), b.src(a, type_), b.src(pos, "u32"), b.src(length, "u32"))


@op("bfi")
def bfi(b, inst, mods):
    type_ = mods.last()
    bits = int(type_[1:])
    d, a, base, pos, length = inst.operands
    u = np.dtype(f"u{bits // 8}").type

    def f(x, y, p, n):
        p, n = (p & 255).astype(x.dtype), (n & 255).astype(x.dtype)
        inside = p < bits
        p = np.where(inside, p, u(0))
        ones = np.where(n >= bits, ~u(0), (u(1) << np.minimum(n, u(bits - 1))) - u(1))
        mask = np.where(inside, ones << p, u(0))
        return (y & ~mask) | (x << p & mask)

    slots = b.src(a, f"u{bits}"), b.src(base, f"u{bits}"), b.src(pos, "u32"), b.src(length, "u32")
    return through(f, b.dst(d, f"u{bits}"), *slots)


def _leading(values, bits: int):
    """Index of the most significant one bit of unsigned values, -1 for zero."""
    return np.array([int(v).bit_length() - 1 for v in values.tolist()], np.int64)


@op("clz")
def clz(b, inst, mods):
    type_ = mods.last()
    bits = int(type_[1:])
    return through(
        lambda p: bits - 1 - _leading(p, bits), b.dst(inst.operands[0], "u32"), b.src(inst.operands[1], f"u{bits}")
    )


@op("bfind")
def bfind(b, inst, mods):
    type_ = mods.last()
    amount, bits = mods.flag("shiftamt"), int(type_[1:])
    mask = (1 << bits) - 1

    def f(p):
        values = [v if v >= 0 else ~v & mask for v in p.tolist()]
        found = np.array([v.bit_length() - 1 for v in values], np.int64)
        return (np.where(found < 0, -1, bits - 1 - found) if amount else found).astype(np.int32).view(np.uint32)

    return through(f, b.dst(inst.operands[0], "u32"), b.src(inst.operands[1], type_))


@op("popc")
def popc(b, inst, mods):
    type_ = mods.last()
    return through(
        lambda p: np.bitwise_count(p), b.dst(inst.operands[0], "u32"), b.src(inst.operands[1], f"u{type_[1:]}")
    )


@op("brev")
def brev(b, inst, mods):
    bits = int(mods.last()[1:])

    def f(p):
        return np.array([int(format(v, f"0{bits}b")[::-1], 2) for v in p.tolist()], np.uint64)

    return through(f, b.dst(inst.operands[0], f"u{bits}"), b.src(inst.operands[1], f"u{bits}"))


@op("fns")
def fns(b, inst, mods):
    mods.last()
    d, mask, base, offset = inst.operands

    def one(m, at, n):
        if n == 0:
            return at if m >> at & 1 else 0xFFFFFFFF
        step, left = (1, n) if n > 0 else (-1, -n)
        while 0 <= at < 32:
            left -= m >> at & 1
            if left == 0:
                return at
            at += step
        return 0xFFFFFFFF

    def f(m, at, n):
        return np.array([one(*t) for t in zip(m.tolist(), at.tolist(), n.tolist(), strict=True)], np.uint32)

    return ternary(f, b.dst(d, "u32"), b.src(mask, "u32"), b.src(base, "u32"), b.src(offset, "s32"))


@op("lop3")
def lop3(b, inst, mods):
    type_ = mods.last()
    combine = mods.choose("or", "and")
    d, x, y, z, table = inst.operands[:5]
    lut = table.value

    def f(p, q, r):
        out = np.zeros_like(p)
        for i in range(8):
            if lut >> i & 1:
                out |= (p if i & 4 else ~p) & (q if i & 2 else ~q) & (r if i & 1 else ~r)
        return out

    x, y, z = b.src(x, type_), b.src(y, type_), b.src(z, type_)
    if combine is None:
        return ternary(f, b.dst(d, type_), x, y, z)
    if not isinstance(d, Pair) or len(inst.operands) != 6:
        raise EmulatorError(f"{inst.name} needs d|p and a sixth operand")
    out, p = b.dst(d.first, type_), b.dst(d.second, "pred")
    q, negated = _maybe_negated(b, inst.operands[5])

    def both(p, q, r, c):
        bits = f(p, q, r)
        return bits, _BOOL[combine](bits != 0, c ^ negated)

    return several(both, (out, p), x, y, z, q)


@op("prmt")
def prmt(b, inst, mods):
    mods.flag("b32")  # the mode stands behind the type: prmt.b32.f4e
    mode = mods.choose("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    d, x, y, c = inst.operands
    fixed = {
        "f4e": lambda s: [s, s + 1, s + 2, s + 3],
        "b4e": lambda s: [s, s - 1 & 7, s - 2 & 7, s - 3 & 7],
        "rc8": lambda s: [s] * 4,
        "ecl": lambda s: [max(i, s) for i in range(4)],
        "ecr": lambda s: [min(i, s) for i in range(4)],
        "rc16": lambda s: [0, 1, 0, 1] if s % 2 == 0 else [2, 3, 2, 3],
    }

    def f(p, q, sel):
        pool = np.stack([p, q], 1).view(np.uint8)
        if mode:
            pick = np.array([fixed[mode](int(s) & 3) for s in sel.tolist()]) & 7
            return np.take_along_axis(pool, pick, 1).copy().view(np.uint32)[:, 0]
        nibbles = np.stack([sel >> np.uint32(4 * i) & np.uint32(15) for i in range(4)], 1).astype(np.int64)
        got = np.take_along_axis(pool, nibbles & 7, 1)
        return np.where(nibbles & 8, np.where(got & 128, 255, 0), got).astype(np.uint8).view(np.uint32)[:, 0]

    return ternary(f, b.dst(d, "b32"), b.src(x, "b32"), b.src(y, "b32"), b.src(c, "u32"))


@op("bmsk", "szext")
def mask_bits(b, inst, mods):
    type_ = mods.last()
    wrap = mods.need("clamp", "wrap") == "wrap"
    d, x, y = inst.operands

    def bmsk(p, q):
        p, q = (p & 31, q & 31) if wrap else (np.minimum(p, 32), np.minimum(q, 32))
        ones = (np.uint64(1) << q.astype(np.uint64)) - np.uint64(1)
        return (ones << p.astype(np.uint64)).astype(np.uint32)

    def szext(p, q):
        q = (q & 31 if wrap else np.minimum(q, 32)).astype(np.int64)
        full = p.astype(np.int64) & 0xFFFFFFFF
        low = full & ((1 << q) - 1)
        if type_[0] == "s":
            low = np.where((q > 0) & (full >> np.maximum(q - 1, 0) & 1 > 0), low - (1 << q), low)
        return low

    f = bmsk if inst.op == "bmsk" else szext
    return through(f, b.dst(d, type_), b.src(x, type_), b.src(y, "u32"))
