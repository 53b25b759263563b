"""atom and red. PTX ISA §9.7.13.5-6. Lanes take effect one after another, in lane order."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from kgen.emulator.access import check_alignment, places
from kgen.emulator.checks import check_read, mark_write
from kgen.emulator.operands import Sink, Vector
from kgen.emulator.program import dtype_of
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

_SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_ORDER = ("relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys")
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")
_FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}


def scalar_operation(name: str):
    """fn(old, b, c) of numpy scalars of one type."""
    return {
        "add": lambda o, x, c: o + x,
        "min": lambda o, x, c: min(o, x),
        "max": lambda o, x, c: max(o, x),
        "inc": lambda o, x, c: o.dtype.type(0) if o >= x else o + o.dtype.type(1),
        "dec": lambda o, x, c: x if o == 0 or o > x else o - o.dtype.type(1),
        "and": lambda o, x, c: o & x,
        "or": lambda o, x, c: o | x,
        "xor": lambda o, x, c: o ^ x,
        "exch": lambda o, x, c: x,
        "cas": lambda o, x, c: c if o == x else o,
    }[name]


@op("atom", "red")
def atomic(b, inst, mods):
    type_ = mods.last()
    count = {"v2": 2, "v4": 4, "v8": 8}.get(mods.choose("v2", "v4", "v8"), 1)
    name, space = mods.need(*_OPERATIONS), mods.choose(*_SPACES) or ""
    mods.flag(*_ORDER)
    mods.flag("noftz")
    mods.prefix("L2::")
    operands = list(inst.operands)
    d = operands.pop(0) if inst.op == "atom" else Sink()
    if type_ == "b128":
        return _atomic128(b, inst, name, space, d, operands)
    row_type = {"f16": "b16", "bf16": "b16"}.get(type_, type_)
    size = np.dtype(dtype_of(row_type)).itemsize
    address, base_space = b.address(operands[0])
    space = space or base_space or ""

    def items(x):
        return x.items if isinstance(x, Vector) else (x,)

    outs = [b.dst(x, row_type) for x in items(d)] if not isinstance(d, Sink) else [None] * count
    sources = [b.src(x, row_type) for x in items(operands[1])]
    third = b.src(operands[2], row_type) if name == "cas" else None
    element = np.dtype(_FLOATS.get(type_, dtype_of(row_type)))
    operate = scalar_operation(name)
    total, what = size * count, inst.name

    def fn(w, m):
        v = w.v
        a = address(w)
        lanes = np.arange(32) if m is True else np.flatnonzero(m)
        a = a[lanes]
        check_alignment(a, total, what)
        with np.errstate(all="ignore"):
            for select, kind, memory, index in places(w, a, m, total, space, what, True):
                if kind == "shared":
                    check_read(w, memory, index, total, what, True)
                    mark_write(w, memory, index, total, what, lanes[select], True)
                for i in index.tolist():
                    w.cta.cluster.handover.acquire((kind, id(memory), i), w.actor)
                    w.cta.cluster.handover.release((kind, id(memory), i), w.actor)
                view = memory.views[size].view(element)
                per = size // element.itemsize
                for lane, byte in zip(lanes[select].tolist(), index.tolist(), strict=True):
                    for j in range(count):
                        at = (byte + j * size) // element.itemsize
                        x = np.ascontiguousarray(v[sources[j]][lane : lane + 1]).view(element)
                        c = v[third][lane : lane + 1].view(element)[0] if third is not None else None
                        old = view[at : at + per].copy()
                        for k in range(per):
                            view[at + k] = operate(old[k], x[k], c)
                        if outs[j] is not None:
                            v[outs[j]][lane : lane + 1] = old.view(v[outs[j]].dtype)
        w.machine.progress += 1

    return fn


def _atomic128(b, inst, name, space, d, operands):
    """atom.exch.b128 and atom.cas.b128."""
    if name not in ("exch", "cas") or inst.op != "atom":
        raise EmulatorError(f"{inst.name}: 128-bit atomics are atom.exch and atom.cas")
    address, base_space = b.address(operands[0])
    out = None if isinstance(d, Sink) else b.quad(d, True)
    first, second = b.quad(operands[1]), b.quad(operands[2]) if name == "cas" else None
    space, what = space or base_space or "", inst.name

    def fn(w, m):
        v = w.v
        lanes = np.arange(32) if m is True else np.flatnonzero(m)
        a = address(w)[lanes]
        check_alignment(a, 16, what)
        for select, kind, memory, index in places(w, a, m, 16, space, what, True):
            if kind == "shared":
                check_read(w, memory, index, 16, what)
                mark_write(w, memory, index, 16, what, lanes[select])
            view = memory.views[8]
            for lane, byte in zip(lanes[select].tolist(), index.tolist(), strict=True):
                w.cta.cluster.handover.acquire((kind, id(memory), byte), w.actor)
                w.cta.cluster.handover.release((kind, id(memory), byte), w.actor)
                old = view[byte >> 3 : (byte >> 3) + 2].copy()
                x = v[first][lane].copy()
                if second is None:
                    view[byte >> 3 : (byte >> 3) + 2] = x
                elif (old == x).all():
                    view[byte >> 3 : (byte >> 3) + 2] = v[second][lane]
                if out is not None:
                    v[out][lane] = old
        w.machine.progress += 1

    return fn
