"""cvt of single values, cvta. PTX ISA §9.7.9.20-21. Pairs are in narrow.py."""

from __future__ import annotations

import numpy as np

from kgen.emulator import formats
from kgen.emulator.isa import exact, half, narrow
from kgen.emulator.isa.floating import flush, round_f32
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
    if b.slots[d][0] == "reg" and np.dtype(b.slots[d][3]).itemsize > narrow.itemsize:
        return through(lambda p: p.astype(narrow), d, x)

    def fn(w, m):
        np.copyto(w.v[d], w.v[x], casting="unsafe", where=m)

    return fn


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
        return exact.to_integer(whole(read(p).astype(np.float64)), info.dtype)

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
        steps.append(lambda r: np.where(np.isnan(r), 0, np.clip(r, 0, 1)))

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
        return through(lambda p: (flush if ftz else np.asarray)(value(p).astype(np.float32)), b.dst(d, "f32"), x)
    if out == "tf32":
        f = lambda p: formats.encode(value(p), formats.TF32, mode or "rna", satfinite)  # noqa: E731
        return through(f, b.dst(d, "b32"), x)
    if mode in ("rz", "rm", "rp") or satfinite:
        fmt, r = formats.FORMATS[out], mode or "rn"
        return through(lambda p: formats.encode(value(p), fmt, r, satfinite), b.dst(d, "b16"), x)
    return through(lambda p: half.narrow(out, value(p)), b.dst(d, "b16"), x)


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
