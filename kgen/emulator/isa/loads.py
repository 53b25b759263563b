"""ld, ldu, st, and their vectors. PTX ISA §9.7.9.8-12."""

from __future__ import annotations

import numpy as np

from kgen.emulator.access import check_alignment, places
from kgen.emulator.bursts import Access, burst
from kgen.emulator.checks import check_read, mark_write
from kgen.emulator.operands import Reg, Symbol, Vector
from kgen.emulator.program import dtype_of
from kgen.emulator.registry import op
from kgen.errors import EmulatorError

SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "param",
    "param::entry",
    "param::func",
    "const",
)
_ORDER = ("relaxed", "acquire", "release", "volatile", "mmio")
_HINTS = ("nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def _common(b, inst, mods):
    """(type, vector length, space, whether others may synchronise through it)."""
    type_ = mods.last()
    mods.flag("weak", "cta", "cluster", "gpu", "sys")
    synchronises = mods.flag(*_ORDER)
    mods.flag(*_HINTS)
    mods.prefix("L1::", "L2::")
    count = _VECTORS.get(mods.choose(*_VECTORS), 1)
    return type_, count, mods.choose(*SPACES) or "", synchronises


def _space(space: str, base_space: str | None) -> str:
    """Parameters and constants lie in the global window, those of calls in local memory."""
    if space.startswith("param") or space == "const":
        return base_space if base_space in ("local", "global") else "global"
    if space == "" and base_space is not None:
        return base_space
    return space


@op("ld", "ldu")
def ld(b, inst, mods):
    type_, count, space, synchronises = _common(b, inst, mods)
    d, source = inst.operands[:2]
    address, base_space = b.address(source)
    space = _space(space, base_space)
    quad = type_ == "b128"
    if quad:
        if count != 1:
            raise EmulatorError("vectors of .b128 are not modelled")
        size, count, out = 8, 2, b.quad(d, True)
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

    def slow(w, m):
        a = address(w)
        if m is not True:
            a = a[m]
        check_alignment(a, total, what)
        for select, name, memory, index in places(w, a, m, total, space, what, False):
            if name == "shared":
                check_read(w, memory, index, total, what, synchronises)
            if synchronises:
                for i in index.tolist():
                    w.cta.cluster.handover.acquire((name, id(memory), i), w.actor)
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

    if quad or total > 16 or synchronises or None in slots:
        return slow
    return _whole_warps(b, slow, False, space, source, tuple(b.place(s) for s in slots), dtype)


def _whole_warps(b, slow, store: bool, space: str, x, items, dtype):
    """The closure: a burst of one (see bursts.py) for whole warps, which leaves what is unusual to `slow`."""
    near = space in ("shared", "shared::cta")
    base = _base(b, x, near) if near or space == "global" else None
    if base is None:
        return slow
    access = Access(store, "shared" if near else "global", base, x.offset, items, np.dtype(dtype))
    together = burst([access], [(b.index, slow)])

    def fn(w, m):
        return together(w) if m is True else slow(w, m)

    fn.access = access
    return fn


def _base(b, x, near: bool) -> tuple[int, int] | None:
    """The place of an address's base: 32 bits of shared memory (`near`), either width of global memory."""
    base = x.base
    if isinstance(base, Symbol):
        fits = b.space_of(base) == ("shared" if near else "global")
        return b.place(b.address_slot(base, "u32" if near else "u64")) if fits else None
    if not isinstance(base, Reg) or (near and b.register(base)[0] != 4):
        return None
    return b.place(b.src(base, "u64" if b.register(base)[0] == 8 else "u32"))


@op("st")
def st(b, inst, mods):
    type_, count, space, synchronises = _common(b, inst, mods)
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

    def slow(w, m):
        v = w.v
        a = address(w)
        if m is not True:
            a = a[m]
        check_alignment(a, total, what)
        for select, name, memory, index in places(w, a, m, total, space, what, True):
            if name == "shared":
                lanes = None if m is True else np.flatnonzero(m)
                if not isinstance(select, slice):
                    lanes = select if lanes is None else lanes[select]
                mark_write(w, memory, index, total, what, lanes, synchronises)
            if synchronises:
                for i in index.tolist():
                    w.cta.cluster.handover.release((name, id(memory), i), w.actor)
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

    if quad or total > 16 or synchronises:
        return slow
    return _whole_warps(b, slow, True, space, target, tuple(b.place(s, unsigned) for s in slots), unsigned)
