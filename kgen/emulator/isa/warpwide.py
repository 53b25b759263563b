"""Instructions of a whole warp: shfl, vote, match, redux, activemask, elect. PTX ISA §9.7.9.6, §9.7.13.8-16."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.control import gather, gather_values
from kgen.emulator.isa.helpers import put
from kgen.emulator.operands import Pair, Reg, Sink
from kgen.emulator.registry import op
from kgen.emulator.warp import bitmask
from kgen.errors import EmulatorError

_LANES = np.arange(32, dtype=np.int64)


@op("shfl.sync")
def shfl(b, inst, mods):
    mods.last()
    mode = mods.need("idx", "up", "down", "bfly")
    d, a, lane, clamp, mask = inst.operands
    p = None
    if isinstance(d, Pair):
        d, p = d.first, None if isinstance(d.second, Sink) else b.dst(d.second, "pred")
    out, a = b.dst(d, "b32"), b.src(a, "b32")
    lane, clamp, mask = b.src(lane, "u32"), b.src(clamp, "u32"), b.src(mask, "u32")

    def fn(w, m):
        held = gather_values(w, m, w.v[mask], inst.name)
        if held:
            return held
        n, c = w.v[lane].astype(np.int64) & 31, w.v[clamp].astype(np.int64)
        segment, limit = c >> 8 & 31, c & 31
        top = (_LANES & segment) | (limit & ~segment)
        if mode == "up":
            j = _LANES - n
            ok = j >= top
        elif mode == "down":
            j = _LANES + n
            ok = j <= top
        elif mode == "bfly":
            j = _LANES ^ n
            ok = j <= top
        else:
            j = (_LANES & segment) | (n & ~segment)
            ok = j <= top
        j = np.where(ok, j, _LANES) & 31
        if m is not True and not m[j[m]].all():
            reader = next(int(i) for i in np.flatnonzero(m) if not m[j[i]])
            raise EmulatorError(f"shfl.sync: lane {reader} reads lane {int(j[reader])}, which does not take part")
        put(w.v[out], w.v[a][j], m)
        if p is not None:
            put(w.v[p], ok, m)
        return None

    return fn


@op("vote.sync")
def vote(b, inst, mods):
    mods.last()
    mode = mods.need("all", "any", "uni", "ballot")
    d, p, mask = inst.operands
    negated = isinstance(p, Reg) and p.negated
    out = b.dst(d, "b32" if mode == "ballot" else "pred")
    p, mask = b.src(p, "pred"), b.src(mask, "u32")

    def fn(w, m):
        held = gather_values(w, m, w.v[mask], inst.name)
        if held:
            return held
        values = w.v[p] ^ negated
        chosen = values if m is True else values & m
        if mode == "ballot":
            r = bitmask(chosen)
        elif mode == "any":
            r = chosen.any()
        elif mode == "all":
            r = bitmask(chosen) == bitmask(m)
        else:
            r = bitmask(chosen) in (0, bitmask(m))
        put(w.v[out], r, m)
        return None

    return fn


@op("activemask")
def activemask(b, inst, mods):
    mods.last()
    out = b.dst(inst.operands[0], "b32")
    return lambda w, m: put(w.v[out], bitmask(m), m)


@op("match.any.sync", "match.all.sync", "match.sync")
def match(b, inst, mods):
    type_ = mods.last()
    mode = "all" if "all" in inst.mods else "any"
    mods.flag("all", "any")
    d, a, mask = inst.operands
    p = None
    if isinstance(d, Pair):
        d, p = d.first, b.dst(d.second, "pred")
    out, a, mask = b.dst(d, "b32"), b.src(a, type_), b.src(mask, "u32")

    def fn(w, m):
        held = gather_values(w, m, w.v[mask], inst.name)
        if held:
            return held
        lanes = bitmask(m)
        values = w.v[a]
        if mode == "any":
            r = np.array([bitmask(values == x) & lanes for x in values], np.uint32)
        else:
            active = values if m is True else values[m]
            same = bool((active == active[0]).all())
            r = np.full(32, lanes if same else 0, np.uint32)
            if p is not None:
                put(w.v[p], same, m)
        put(w.v[out], r, m)
        return None

    return fn


@op("redux.sync")
def redux(b, inst, mods):
    type_ = mods.last()
    name = mods.need("add", "min", "max", "and", "or", "xor")
    absolute, nan = mods.flag("abs"), mods.flag("NaN")
    d, a, mask = inst.operands
    out, a, mask = b.dst(d, type_), b.src(a, type_), b.src(mask, "u32")
    reduce = {
        "add": np.add, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[name].reduce  # fmt: skip
    floating = type_ == "f32"

    def fn(w, m):
        held = gather_values(w, m, w.v[mask], inst.name)
        if held:
            return held
        values = w.v[a] if m is True else w.v[a][m]
        if absolute:
            values = np.abs(values)
        if floating and not nan:
            numbers = values[~np.isnan(values)]
            put(w.v[out], reduce(numbers) if numbers.size else np.nan, m)
        else:
            put(w.v[out], reduce(values, dtype=values.dtype), m)
        return None

    return fn


@op("elect.sync")
def elect(b, inst, mods):
    """The leader is the lowest lane of the mask: what NVIDIA's own fallback does; the document leaves it open."""
    d, mask = inst.operands
    first, p = (d.first, d.second) if isinstance(d, Pair) else (d, Sink())
    out = b.dst(first, "b32")
    p = None if isinstance(p, Sink) else b.dst(p, "pred")
    mask = b.src(mask, "u32")

    def fn(w, m):
        held = gather(w, m, w.v[mask])
        if held:
            return held
        lanes = bitmask(m)
        leader = (lanes & -lanes).bit_length() - 1
        if out is not None:
            put(w.v[out], leader, m)
        if p is not None:
            put(w.v[p], leader == _LANES, m)
        return None

    return fn
