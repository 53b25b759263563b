"""cvt, cvt.pack and cvta. PTX ISA §9.7.9.20-22."""

from __future__ import annotations

import numpy as np

from kgen.emulator import formats
from kgen.emulator.isa import half
from kgen.emulator.isa.floating import flush, round_f32
from kgen.emulator.isa.helpers import nothing, through
from kgen.emulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from kgen.emulator.operands import Reg, Symbol
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

_INTS = {f"{s}{n}" for s in "us" for n in (8, 16, 32, 64)}
_FLOATS = {"f16", "bf16", "f32", "f64", "tf32"}
_NARROW = {"e4m3": "e4m3", "e5m2": "e5m2", "e2m1": "e2m1", "e2m3": "e2m3", "e3m2": "e3m2", "ue8m0": "ue8m0"}
_PAIRS = {f"{n}x2": n for n in ("f16", "bf16", *_NARROW)}
_ROUND = ("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")
_TO_INT = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _format(name: str):
    return getattr(formats, name.upper(), None) or next(
        f for f in vars(formats).values() if getattr(f, "name", None) == name
    )


@op("cvt")
def cvt(b, inst, mods):
    source, out = mods.last(), mods.last()
    while out in ("scaled", "n2", "ul1") or out.startswith("scaled::"):
        raise EmulatorError(f"{inst.name} is not modelled")
    mode = mods.choose(*_ROUND)
    ftz, sat, satfinite, relu = mods.flag("ftz"), mods.flag("sat"), mods.flag("satfinite"), mods.flag("relu")
    if mode == "rs":
        raise EmulatorError("cvt with stochastic rounding is not modelled")
    if out in _PAIRS:
        if source in _PAIRS:
            return _unpack(b, inst, out, source, relu)
        return _pack(b, inst, out, mode, satfinite, relu, ftz)
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
        r = whole(read(p).astype(np.float64))
        return np.array(
            [0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in r.tolist()]
        ).astype(info.dtype)

    return through(f, b.wide_dst(inst.operands[0], out), x)


def _int_float(b, inst, out, source, mode, sat):
    d, x = inst.operands
    x = b.src(x, source)
    mode = mode or "rn"
    if out == "f64":
        return through(lambda p: p.astype(np.float64), b.dst(d, "f64"), x)
    if out == "f32":
        if mode == "rn":
            return through(lambda p: p.astype(np.float32), b.dst(d, "f32"), x)
        return through(lambda p: round_f32(p.astype(np.float64), mode), b.dst(d, "f32"), x)
    return through(lambda p: half.narrow(out, p.astype(np.float64)), b.dst(d, "b16"), x)


def _float_float(b, inst, out, source, mode, ftz, sat, satfinite, relu):
    d = inst.operands[0]
    x, read = _read(b, inst.operands[1], source, ftz)
    steps = []
    if mode in _TO_INT:
        steps.append(_TO_INT[mode])
    if relu:
        steps.append(lambda r: np.where(np.isnan(r), r, np.maximum(r, 0)))
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
        return through(lambda p: _tf32(value(p), mode or "rna"), b.dst(d, "b32"), x)
    if mode in ("rz", "rm", "rp") or satfinite:
        fmt = _format(out)
        r = mode or "rn"
        return through(lambda p: formats.encode(value(p), fmt, r, satfinite), b.dst(d, "b16"), x)
    return through(lambda p: half.narrow(out, value(p)), b.dst(d, "b16"), x)


def _tf32(values, mode):
    bits = values.astype(np.float32).view(np.uint32)
    if mode == "rz":
        return bits & np.uint32(0xFFFFE000)
    # rna: ties away from zero; rn: to even
    add = np.uint32(0x1000) if mode == "rna" else np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    return np.where(np.isfinite(values), (bits + add) & np.uint32(0xFFFFE000), bits)


def _pack(b, inst, out, mode, satfinite, relu, ftz):
    name = _PAIRS[out]
    d, upper, lower = inst.operands
    slots = b.src(upper, "f32"), b.src(lower, "f32")
    if name in ("f16", "bf16") and mode == "rn" and not satfinite:
        kind = half.numpy_type(name)

        def pair(hi, lo):
            r = np.empty((32, 2), kind)
            r[:, 0], r[:, 1] = lo, hi
            if relu:
                r = np.where(np.isnan(r), r, np.maximum(r, kind(0)))
            return r.view(np.uint32)[:, 0]

        return through(pair, b.dst(d, "b32"), *slots)
    fmt = _format(name)
    width = {"f16": "b32", "bf16": "b32", "e2m1": "b8"}.get(name, "b16")
    mode = mode or "rn"

    def f(hi, lo):
        return formats.pack_pair(
            formats.encode(hi, fmt, mode, satfinite, relu), formats.encode(lo, fmt, mode, satfinite, relu), fmt
        )

    return through(f, b.wide_dst(d, width), *slots)


def _unpack(b, inst, out, source, relu):
    d, x = inst.operands
    fmt, name = _format(_PAIRS[source]), _PAIRS[out]
    width = {"f16": "b32", "bf16": "b32", "e2m1": "b8"}.get(_PAIRS[source], "b16")

    def f(p):
        hi, lo = formats.unpack_pair(np.ascontiguousarray(p), fmt)
        hi, lo = (half.narrow(name, formats.decode(c, fmt)).astype(np.uint32) for c in (hi, lo))
        return hi << np.uint32(16) | lo

    return through(f, b.dst(d, "b32"), b.src(x, width))


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
