"""cvt to and from packed and narrow types, cvt.rs, cvt.pack. PTX ISA §9.7.9.21-22.

The first source is the upper element. Two-source forms read f32, one-source forms unpack f16x2 or bf16x2.
cvt.rs adds random bits below the last bit that stays and cuts the rest off: 13 bits for f16 and 16 for bf16, just
what f32 has to lose there. The 8- and 6-bit formats lose more than the 16 bits given; that these stand directly
below the last bit that stays, and that subnormal results work alike, is inferred (the document has a figure).
"""

from __future__ import annotations

import numpy as np

from kgen.emulator import formats
from kgen.emulator.isa import half
from kgen.emulator.isa.helpers import through
from kgen.emulator.operands import Vector
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

__all__ = ["PAIRS", "QUADS", "pack", "stochastic", "unpack"]

_NAMES = ("f16", "bf16", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "ue8m0")
PAIRS = {f"{n}x2": n for n in _NAMES}
QUADS = {f"{n}x4": n for n in ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")}


def _width(name: str) -> str:
    """The register type of a pair."""
    return {"f16": "b32", "bf16": "b32", "e2m1": "b8"}.get(name, "b16")


def _check_rounding(name, mode, inst):
    known = {"f16": ("rn", "rz"), "bf16": ("rn", "rz"), "ue8m0": ("rz", "rp")}.get(name, ("rn",))
    if mode not in known:
        raise EmulatorError(f"{inst.name}: .{name} is rounded by .{' or .'.join(known)}")


def pack(b, inst, out, source, mode, satfinite, relu):
    """cvt to a pair, of two f32 or of the halves of one register."""
    name = PAIRS[out]
    fmt = formats.FORMATS[name]
    _check_rounding(name, mode, inst)
    if len(inst.operands) == 2:
        d, x = inst.operands
        kind = formats.FORMATS[PAIRS[source]]

        def one(p):
            hi, lo = (formats.decode(c, kind) for c in formats.unpack_pair(np.ascontiguousarray(p), kind))
            return _pair(hi, lo, fmt, mode, satfinite, relu)

        return through(one, b.wide_dst(d, _width(name)), b.src(x, "b32"))
    if source != "f32":
        raise EmulatorError(f"{inst.name}: two sources must be .f32")
    d, upper, lower = inst.operands
    slots = b.src(upper, "f32"), b.src(lower, "f32")
    if name in ("f16", "bf16") and mode == "rn" and not satfinite and not relu:
        return _fast(b, d, name, slots)
    f = lambda hi, lo: _pair(hi, lo, fmt, mode, satfinite, relu)  # noqa: E731
    return through(f, b.wide_dst(d, _width(name)), *slots)


def _pair(hi, lo, fmt, mode, satfinite, relu):
    upper, lower = (formats.encode(x, fmt, mode, satfinite, relu) for x in (hi, lo))
    return formats.pack_pair(upper, lower, fmt)


def _fast(b, d, name, slots):
    """The conversion of every epilogue: two f32 to f16x2 or bf16x2, to nearest."""
    kind = half.numpy_type(name)

    def f(upper, lower):
        r = np.empty((upper.size, 2), kind)
        r[:, 0], r[:, 1] = lower, upper
        return half.canonical(name, r.view(np.uint16)).view(np.uint32)[:, 0]

    return through(f, b.dst(d, "b32"), *slots)


def unpack(b, inst, out, source, relu):
    """cvt of a narrow pair to f16x2 or bf16x2."""
    d, x = inst.operands
    fmt, to = formats.FORMATS[PAIRS[source]], formats.FORMATS[PAIRS[out]]

    def f(p):
        hi, lo = (formats.decode(c, fmt) for c in formats.unpack_pair(np.ascontiguousarray(p), fmt))
        return _pair(hi, lo, to, "rn", False, relu)

    return through(f, b.dst(d, "b32"), b.src(x, _width(PAIRS[source])))


def stochastic(b, inst, out, source, satfinite, relu):
    """cvt.rs of two or four f32."""
    name = PAIRS.get(out) or QUADS.get(out)
    if source != "f32" or name is None or (out in PAIRS and name not in ("f16", "bf16")):
        raise EmulatorError(f"{inst.name}: .rs converts .f32 to .f16x2, .bf16x2 and the x4 types only")
    if name == "e2m1":
        raise EmulatorError(
            f"{inst.name} is not modelled: which random bit meets which bit of the value is only in a figure"
        )
    d, *values, bits = inst.operands
    values = values[0].items if isinstance(values[0], Vector) else values
    if len(values) != (2 if out in PAIRS else 4):
        raise EmulatorError(f"{inst.name} takes {2 if out in PAIRS else 4} values")
    fmt = formats.FORMATS[name]
    used = 13 if name == "f16" else 16
    step = 16 if out in PAIRS else 8

    def f(random, *rows):
        r = np.zeros(32, np.uint32)
        for i, x in enumerate(rows):
            mine = (random >> np.uint32(16) if i < len(rows) // 2 else random) & np.uint32((1 << used) - 1)
            code = formats.encode(x, fmt, "rs", satfinite, relu, random=mine / 2.0**used, kept=used)
            r = r << np.uint32(step) | code
        return r

    return through(f, b.dst(d, "b32"), b.src(bits, "b32"), *(b.src(x, "f32") for x in values))


_PACKED = {"u16": 16, "s16": 16, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "u2": 2, "s2": 2}


@op("cvt.pack")
def cvt_pack(b, inst, mods):
    if not mods.flag("sat"):
        raise EmulatorError("cvt.pack needs .sat")
    if len(inst.operands) == 4 and mods.last() != "b32":
        raise EmulatorError(f"{inst.name}: the third source is .b32")
    source, kind = mods.last(), mods.last()
    bits = _PACKED.get(kind)
    if source != "s32" or bits is None or (bits == 16) != (len(inst.operands) == 3):
        raise EmulatorError(f"{inst.name} does not exist")
    low, high = (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    ones = (1 << bits) - 1

    def f(p, q, c=0):
        p, q = (np.clip(x.astype(np.int64), low, high) & ones for x in (p, q))
        return (np.asarray(c).astype(np.int64) << 2 * bits | p << bits | q) & 0xFFFFFFFF

    d, *sources = inst.operands
    slots = [b.src(x, "s32") for x in sources[:2]] + [b.src(x, "b32") for x in sources[2:]]
    return through(f, b.dst(d, "b32"), *slots)
