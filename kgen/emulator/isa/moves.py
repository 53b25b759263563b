"""mov (with packing), and hints without effect. PTX ISA §9.7.9.1-3."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.helpers import nothing, put, unary
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

    def fn(w, m):
        put(w.v[out], w.v[s], m)

    return fn


def _parts(items, type_):
    bits = int(type_[1:]) // len(items)
    if bits not in (8, 16, 32, 64):
        raise EmulatorError(f"mov.{type_} with {len(items)} parts")
    return bits


def _join(b, d, items, type_):
    bits = _parts(items, type_)
    slots = [b.src(x, f"b{bits}") for x in items]
    out = b.dst(d, type_)
    dtype = np.dtype(f"u{bits // 8}")

    def fn(w, m):
        both = np.empty((32, len(slots)), dtype)
        for i, s in enumerate(slots):
            both[:, i] = w.v[s]
        np.copyto(w.v[out].view(f"u{w.v[out].itemsize}"), both.view(f"u{bits * len(slots) // 8}")[:, 0], where=m)

    return fn


def _split(b, items, s, type_):
    bits = _parts(items, type_)
    outs = [b.dst(x, f"b{bits}") for x in items]
    source = b.src(s, type_)
    dtype = np.dtype(f"u{bits // 8}")

    def fn(w, m):
        parts = w.v[source].view(dtype).reshape(32, len(outs)).copy()
        for i, out in enumerate(outs):
            if out is not None:
                np.copyto(w.v[out], parts[:, i], where=m)

    return fn


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
