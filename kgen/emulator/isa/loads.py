"""ld, ldu, st, and their vectors. PTX ISA §9.7.9.8-12."""

from __future__ import annotations

import numpy as np

from kgen.emulator.access import check_alignment, places
from kgen.emulator.operands import Vector
from kgen.emulator.program import dtype_of
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

SPACES = ("global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func", "const")
_ORDER = ("weak", "relaxed", "acquire", "release", "volatile", "mmio", "cta", "cluster", "gpu", "sys")
_HINTS = ("nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def _common(b, inst, mods):
    """(type, vector length, space)."""
    type_ = mods.last()
    mods.flag(*_ORDER)
    mods.flag(*_HINTS)
    mods.prefix("L1::", "L2::")
    count = _VECTORS.get(mods.choose(*_VECTORS), 1)
    return type_, count, mods.choose(*SPACES) or ""


def _space(space: str, base_space: str | None) -> str:
    """Parameters and constants lie in the global window, those of calls in local memory."""
    if space.startswith("param") or space == "const":
        return base_space if base_space in ("local", "global") else "global"
    if space == "" and base_space is not None:
        return base_space
    return space


@op("ld", "ldu")
def ld(b, inst, mods):
    type_, count, space = _common(b, inst, mods)
    d, source = inst.operands[:2]
    address, base_space = b.address(source)
    space = _space(space, base_space)
    quad = type_ == "b128"
    if quad:
        if count != 1:
            raise EmulatorError("vectors of .b128 are not modelled")
        size, count, out = 8, 2, b.quad(d)
        dtype = np.dtype(np.uint64)
    else:
        items = d.items if isinstance(d, Vector) else (d,)
        if len(items) != count:
            raise EmulatorError(f"{inst.name} needs {count} destinations")
        slots = [b.wide_dst(x, type_) for x in items]
        dtype = np.dtype(dtype_of(type_))
        size = dtype.itemsize
    shift, total = size.bit_length() - 1, size * count
    total_shift = total.bit_length() - 1
    what = inst.name

    def fn(w, m):
        a = address(w)
        if m is not True:
            a = a[m]
        check_alignment(a, total, what)
        for select, name, memory, index in places(w, a, m, total, space, what, False):
            if name == "shared":
                w.machine.checks.generic_read(w, memory, index, total, what)
            view = memory.views[size]
            if count == 1:
                columns = view[index >> shift].view(dtype)[None]
            else:
                usable = view.size // count * count
                columns = view[:usable].reshape(-1, count)[index >> total_shift].view(dtype).T
            _assign(w, m, select, columns)

    def _assign(w, m, select, columns):
        v = w.v
        if quad:
            rows = v[out]
            lanes = slice(None) if m is True else np.flatnonzero(m)
            lanes = lanes if isinstance(select, slice) else (np.arange(32)[lanes])[select]
            rows[lanes] = columns.T
            return
        if m is True and isinstance(select, slice):
            for slot, column in zip(slots, columns, strict=True):
                if slot is not None:
                    np.copyto(v[slot], column, casting="unsafe")
            return
        lanes = np.arange(32) if m is True else np.flatnonzero(m)
        lanes = lanes[select]
        for slot, column in zip(slots, columns, strict=True):
            if slot is not None:
                v[slot][lanes] = column

    return fn


@op("st")
def st(b, inst, mods):
    type_, count, space = _common(b, inst, mods)
    target, s = inst.operands[:2]
    address, base_space = b.address(target)
    space = _space(space, base_space)
    quad = type_ == "b128"
    if quad:
        size, count, slots = 8, 2, [b.quad(s)]
    else:
        items = s.items if isinstance(s, Vector) else (s,)
        if len(items) != count:
            raise EmulatorError(f"{inst.name} needs {count} sources")
        dtype = np.dtype(dtype_of(type_))
        size = dtype.itemsize
        slots = [b.src(x, type_) for x in items]
    shift, total = size.bit_length() - 1, size * count
    unsigned = np.dtype(f"u{size}")
    what = inst.name
    steps = np.arange(count)

    def fn(w, m):
        v = w.v
        a = address(w)
        if m is not True:
            a = a[m]
        check_alignment(a, total, what)
        for select, name, memory, index in places(w, a, m, total, space, what, True):
            if name == "shared":
                w.machine.checks.generic_write(w, memory, index, total, what)
            view = memory.views[size]
            if quad:
                data = v[slots[0]] if m is True else v[slots[0]][m]
                view[(index >> shift)[:, None] + steps] = data[select]
            elif count == 1:
                data = v[slots[0]]
                if m is not True:
                    data = data[m]
                view[index >> shift] = np.ascontiguousarray(data[select]).view(unsigned)
            else:
                data = np.empty((count, 32), unsigned)
                for j, slot in enumerate(slots):
                    data[j] = np.ascontiguousarray(v[slot]).view(unsigned)
                data = data.T
                if m is not True:
                    data = data[m]
                view[(index >> shift)[:, None] + steps] = data[select]
            if name != "local":
                w.machine.progress += 1

    return fn
