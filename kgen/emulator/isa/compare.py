"""setp, set, selp, slct. PTX ISA §9.7.6."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa import half
from kgen.emulator.isa.floating import flush
from kgen.emulator.isa.helpers import apply, several, through
from kgen.emulator.operands import Pair, Reg, Sink
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

_ORDERED = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_BOOL = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_NAMES = (*_ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def comparison(name: str, floating: bool):
    """fn(a, b) -> bool. Unordered forms are true when an operand is NaN."""
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name.endswith("u") and name != "lu":
        core = _ORDERED[name[:-1]]
        return lambda a, b: core(a, b) | np.isnan(a) | np.isnan(b)
    if name == "ne" and floating:
        return lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)
    return _ORDERED[name]


def _operand(b, x, type_):
    if type_ in half.TYPES:
        return b.src(x, half.ELEMENT[type_]), lambda v: half.widen(type_, v)
    return b.src(x, type_), None


@op("setp")
def setp(b, inst, mods):
    type_ = mods.last()
    name, combine, ftz = mods.need(*_NAMES), mods.choose(*_BOOL), mods.flag("ftz")
    floating = type_[0] == "f" or type_.startswith("bf")
    test = comparison(name, floating)
    d, x, y, *rest = inst.operands
    (x, convert), (y, _) = _operand(b, x, type_), _operand(b, y, type_)
    packed = type_.endswith("x2")
    second = None
    if isinstance(d, Pair):
        d, second = (None if isinstance(p, Sink) else b.dst(p, "pred") for p in (d.first, d.second))
    else:
        d = b.dst(d, "pred")
    if not rest and second is None and convert is None and not ftz and d is not None:
        return apply(test, d, x, y) if isinstance(test, np.ufunc) else through(test, d, x, y)
    carried, negated = (b.src(rest[0], "pred"), isinstance(rest[0], Reg) and rest[0].negated) if rest else (None, False)
    merge = _BOOL[combine] if combine else None

    def f(p, q, *c):
        if convert:
            p, q = convert(p), convert(q)
        if ftz:
            p, q = flush(p), flush(q)
        r = test(p, q)
        if packed:
            first, other = r[0::2], r[1::2]
        else:
            first, other = r, ~r
        if merge is not None:
            first, other = merge(first, c[0] ^ negated), merge(other, c[0] ^ negated)
        return first, other

    return several(f, (d, second), x, y, *((carried,) if rest else ()))


@op("set")
def set_(b, inst, mods):
    source, out = mods.last(), mods.last()
    name = mods.need(*_NAMES)
    if mods.choose(*_BOOL) or mods.flag("ftz") or source in half.TYPES:
        raise EmulatorError("set with a boolean combine, .ftz or half types is not modelled")
    test = comparison(name, source[0] == "f")
    true = np.float32(1) if out == "f32" else -1
    d, x, y = inst.operands
    return through(
        lambda p, q: np.where(test(p, q), true, 0),
        b.dst(d, "f32" if out == "f32" else "s32"),
        b.src(x, source),
        b.src(y, source),
    )


@op("selp")
def selp(b, inst, mods):
    type_ = mods.last()
    d, x, y, p = inst.operands
    d, x, y, s = b.dst(d, type_), b.src(x, type_), b.src(y, type_), b.src(p, "pred")
    if isinstance(p, Reg) and p.negated:
        x, y = y, x

    return through(np.where, d, s, x, y)


@op("slct")
def slct(b, inst, mods):
    control, type_ = mods.last(), mods.last()
    mods.flag("ftz")
    d, x, y, c = inst.operands
    return through(
        lambda p, q, r: np.where(r >= 0, p, q), b.dst(d, type_), b.src(x, type_), b.src(y, type_), b.src(c, control)
    )
