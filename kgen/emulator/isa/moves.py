"""mov (with packing), and hints without effect. PTX ISA §9.7.9.1-3."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.helpers import nothing, put, several, through, unary
from kgen.emulator.operands import Reg, Sink, Special, Vector
from kgen.emulator.registry import op
from kgen.emulator.special import CLOCKS
from kgen.errors import EmulatorError


@op("mov")
def mov(b, inst, mods):
    type_ = mods.last()
    d, s = inst.operands
    if type_ == "b128":
        return _mov128(b, d, s)
    if isinstance(s, Vector):
        return _join(b, d, s.items, type_)
    if isinstance(d, Vector):
        return _split(b, d.items, s, type_)
    out, negated = b.dst(d, type_), isinstance(s, Reg) and s.negated
    if type_ == "pred" and not isinstance(s, Reg):
        s = b.const(bool(getattr(s, "value", 0)), np.bool_)
    elif isinstance(s, Special) and s.name in CLOCKS:
        bits = int(type_[1:])
        return lambda w, m: put(w.v[out], w.machine.clock() & ((1 << bits) - 1), m)
    else:
        s = b.src(s, type_)
    if negated:
        return unary(np.logical_not, out, s)
    return through(np.array, out, s)


def _parts(items, type_):
    bits = int(type_[1:]) // len(items)
    if bits not in (8, 16, 32, 64):
        raise EmulatorError(f"mov.{type_} with {len(items)} parts")
    return bits


def _join(b, d, items, type_):
    bits = _parts(items, type_)
    slots = [b.src(x, f"b{bits}") for x in items]
    part, whole = np.dtype(f"u{bits // 8}"), np.dtype(f"u{bits * len(items) // 8}")

    def join(*parts):
        both = np.empty((parts[0].size, len(parts)), part)
        for i, p in enumerate(parts):
            both[:, i] = p
        return both.view(whole)[:, 0]

    return through(join, b.dst(d, "b" + type_[1:]), *slots)


def _split(b, items, s, type_):
    bits = _parts(items, type_)
    outs = [b.dst(x, f"b{bits}") for x in items]
    dtype, count = np.dtype(f"u{bits // 8}"), len(items)

    def split(p):
        return tuple(np.array(p).view(dtype).reshape(-1, count).T)

    return several(split, tuple(outs), b.src(s, type_))


def _mov128(b, d, s):
    def mask(m):
        return m if m is True else m[:, None]

    if isinstance(s, Vector):
        low, high = (b.src(x, "b64") for x in s.items)
        out = b.quad(d, True)

        def join(w, m):
            put(w.v[out], np.stack([w.v[low], w.v[high]], 1), mask(m))

        return join
    source = b.quad(s)
    if isinstance(d, Vector):
        outs = [None if isinstance(x, Sink) else b.dst(x, "b64") for x in d.items]

        def split(w, m):
            for i, out in enumerate(outs):
                if out is not None:
                    put(w.v[out], w.v[source][:, i], m)

        return split
    out = b.quad(d, True)
    return lambda w, m: put(w.v[out], w.v[source], mask(m))


@op("prefetch", "prefetchu", "discard", "applypriority", "pmevent")
def hint(b, inst, mods):
    mods.left.clear()
    return nothing
