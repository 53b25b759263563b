"""cvt of single values, cvta. PTX ISA §9.7.9.20-21. Pairs are in narrow.py."""

from __future__ import annotations

import numpy as np

from kgen.emulator import formats
from kgen.emulator.isa import exact, half, narrow
from kgen.emulator.isa.floating import flush, one_nan, round_f32, saturate
from kgen.emulator.isa.helpers import nothing, through
from kgen.emulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from kgen.emulator.operands import Reg, Symbol
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

_INTS = {f"{s}{n}" for s in "us" for n in (8, 16, 32, 64)}
_FLOATS = {"f16", "bf16", "f32", "f64", "tf32"}
_ROUND = ("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")
_TO_INT = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@op("cvt")
def cvt(b, inst, mods):
    source, out = mods.last(), mods.last()
    if any("scaled::" in x for x in inst.mods):
        raise EmulatorError(f"{inst.name} is not modelled: how the scale enters the rounding is not documented here")
    mode = mods.choose(*_ROUND)
    ftz, sat, satfinite, relu = mods.flag("ftz"), mods.flag("sat"), mods.flag("satfinite"), mods.flag("relu")
    if mode == "rs":
        return narrow.stochastic(b, inst, out, source, satfinite, relu)
    if out in narrow.PAIRS:
        if source in narrow.PAIRS and out in ("f16x2", "bf16x2"):
            return narrow.unpack(b, inst, out, source, relu)
        return narrow.pack(b, inst, out, source, mode, satfinite, relu)
    if out in _FLOATS and source in _FLOATS:
        return _float_float(b, inst, out, source, mode, ftz, sat, satfinite, relu)
    if out in _INTS and source in _INTS:
        return _int_int(b, inst, out, source, sat)
    if out in _INTS and source in _FLOATS:
        return _float_int(b, inst, out, source, mode, ftz)
    if out in _FLOATS and source in _INTS:
        return _int_float(b, inst, out, source, mode, sat)
    raise EmulatorError(f"cvt from .{source} to .{out} is not modelled")


def _int_int(b, inst, out, source, sat):
    d, x = b.wide_dst(inst.operands[0], out), b.src(inst.operands[1], source)
    info = np.iinfo(f"{'i' if out[0] == 's' else 'u'}{int(out[1:]) // 8}")
    if sat:

        def f(p):
            return np.array([min(max(v, info.min), info.max) for v in p.tolist()]).astype(info.dtype)

        return through(f, d, x)
    # A destination register wider than `out` takes the value extended by out's sign.
    narrow = info.dtype
    if b.slots[d].dtype.itemsize > narrow.itemsize:
        return through(lambda p: p.astype(narrow), d, x)
    return through(np.array, d, x)


def _read(b, x, type_, ftz=False):
    """(slot, fn row -> float32 or float64 values)."""
    if type_ in ("f16", "bf16"):
        return b.src(x, "b16"), lambda v: half.widen(type_, np.ascontiguousarray(v))
    if type_ == "tf32":
        return b.src(x, "f32"), lambda v: v
    return b.src(x, type_), (flush if ftz and type_ == "f32" else lambda v: v)


def _float_int(b, inst, out, source, mode, ftz):
    x, read = _read(b, inst.operands[1], source, ftz)
    whole = _TO_INT[mode or "rzi"]
    info = np.iinfo(f"{'i' if out[0] == 's' else 'u'}{int(out[1:]) // 8}")

    def f(p):
        return exact.to_integer(whole(read(p).astype(np.float64)), info.dtype, source == "f64")

    return through(f, b.wide_dst(inst.operands[0], out), x)


def _int_float(b, inst, out, source, mode, sat):
    d, x = inst.operands
    x = b.src(x, source)
    mode = mode or "rn"
    if out == "f64":
        return through(lambda p: exact.integer_to_f64(p, mode), b.dst(d, "f64"), x)
    if out == "f32":
        if mode == "rn":
            return through(lambda p: p.astype(np.float32), b.dst(d, "f32"), x)
        return through(lambda p: round_f32(exact.odd_f64(p), mode), b.dst(d, "f32"), x)
    if out == "tf32":
        raise EmulatorError(f"{inst.name} does not exist")
    fmt = formats.FORMATS[out]
    return through(lambda p: formats.encode(exact.odd_f64(p), fmt, mode), b.dst(d, "b16"), x)


def _float_float(b, inst, out, source, mode, ftz, sat, satfinite, relu):
    d = inst.operands[0]
    x, read = _read(b, inst.operands[1], source, ftz)
    steps = []
    if mode in _TO_INT:
        steps.append(_TO_INT[mode])
    if relu:
        steps.append(lambda r: np.where((r > 0) | np.isnan(r), r, r.dtype.type(0)))
    if sat:
        steps.append(saturate)

    def value(p):
        r = read(p)
        for s in steps:
            r = s(r)
        return r

    if out == "f64":
        return through(value, b.dst(d, "f64"), x)
    if out == "f32":
        if source == "f64" and mode in ("rz", "rm", "rp"):
            return through(lambda p: round_f32(value(p), mode), b.dst(d, "f32"), x)
        # Only these conversions have one NaN; the others keep sign and payload.
        settle = one_nan if source == "f16" or (source == "f32" and mode in _TO_INT) else np.asarray
        if ftz:
            return through(lambda p: flush(settle(value(p).astype(np.float32))), b.dst(d, "f32"), x)
        return through(lambda p: settle(value(p).astype(np.float32)), b.dst(d, "f32"), x)
    if out == "tf32":
        mode = mode or "rna"
        f = lambda p: formats.encode(value(p), formats.TF32, mode, satfinite)  # noqa: E731
        return through(_cut_nan(f) if mode == "rna" and not satfinite else f, b.dst(d, "b32"), x)
    if mode in ("rz", "rm", "rp") or satfinite:
        fmt, r = formats.FORMATS[out], mode or "rn"
        f = lambda p: formats.encode(value(p), fmt, r, satfinite)  # noqa: E731
    else:
        f = lambda p: half.narrow(out, value(p))  # noqa: E731
    return through(_short_nan(f) if (out, source) == ("f16", "f64") and not satfinite else f, b.dst(d, "b16"), x)


def _cut_nan(f):
    """cvt.rna.tf32 f with its NaNs: the low 13 bits are cut off, even if an infinity stays."""

    def g(p):
        return np.where(np.isnan(p), np.ascontiguousarray(p).view(np.uint32) & np.uint32(0xFFFFE000), f(p))

    return g


def _short_nan(f):
    """cvt.f16.f64 f with its NaNs: quiet, with the sign and the upper payload; the others to f16 give 0x7fff."""

    def g(p):
        bits = np.ascontiguousarray(p).view(np.uint64)
        code = bits >> np.uint64(48) & np.uint64(0x8000) | np.uint64(0x7E00) | bits >> np.uint64(42) & np.uint64(0x3FF)
        return np.where(np.isnan(p), code.astype(np.uint16), f(p))

    return g


_WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}


@op("cvta")
def cvta(b, inst, mods):
    type_ = mods.last()
    to = mods.flag("to")
    space = mods.need("global", "const", "param", "param::entry", *_WINDOWS)
    d, x = inst.operands
    d, s = b.dst(d, type_), b.src(x, type_)
    window = _WINDOWS.get(space, 0)
    if type_ == "u32":
        raise EmulatorError("cvta of 32-bit generic addresses is not modelled")
    if window == 0:
        if space in ("param", "param::entry") and isinstance(x, Symbol) and b.space_of(x) == "local":
            window = LOCAL_WINDOW
        return through(lambda p: p + np.uint64(window), d, s)
    if to:
        return through(lambda p: p - np.uint64(window), d, s)
    return through(lambda p: p + np.uint64(window), d, s)


@op("isspacep")
def isspacep(b, inst, mods):
    space = mods.last()
    window = {**_WINDOWS, "global": GLOBAL_WINDOW}.get(space)
    if window is None:
        raise EmulatorError(f"isspacep.{space} is not modelled")
    shift = np.uint64(40)
    own = space in ("shared", "shared::cta")
    d, x = b.dst(inst.operands[0], "pred"), b.src(inst.operands[1], "u64")

    def fn(w, m):
        a = w.v[x]
        r = a >> shift == np.uint64(window >> 40)
        if own:
            r &= (a >> np.uint64(24) & np.uint64(0xFFFF)) == np.uint64(w.cta.rank)
        np.copyto(w.v[d], r, where=m)

    return fn


@op("createpolicy")
def createpolicy(b, inst, mods):
    mods.left.clear()
    d = inst.operands[0]
    if not isinstance(d, Reg):
        return nothing
    return through(lambda p: p, b.dst(d, "b64"), b.const(0x1000000000000000, np.uint64))
