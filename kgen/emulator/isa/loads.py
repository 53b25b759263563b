"""ld, ldu, st, and their vectors. PTX ISA §9.7.9.8-12."""

from __future__ import annotations

import numpy as np

from kgen.emulator.access import check_alignment, places
from kgen.emulator.bursts import Access
from kgen.emulator.checks import check_read, mark_write
from kgen.emulator.operands import Imm, Reg, Symbol, Vector
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

    if quad or total > 16 or synchronises:
        return slow
    items = None if None in slots else tuple(b.place(s) for s in slots)
    if space in ("shared", "shared::cta") and (near := shared_index(b, source)):
        fast = _fast_shared_load(near, slots, dtype, count, slow)
        return _accessed(b, fast, False, "shared", source, items, dtype)
    if space == "global":
        fast = _fast_global_load(address, slots, dtype, count, what, slow)
        return _accessed(b, fast, False, "global", source, items, dtype)
    return slow


def _accessed(b, fn, store: bool, space: str, x, items, dtype):
    """The closure, with what blocks.py has to know to do several at once."""
    if items is None or isinstance(x.base, Imm):
        return fn
    if isinstance(x.base, Symbol):
        base = b.address_slot(x.base, "u32" if space == "shared" else "u64")
    else:
        base = b.src(x.base, "u64" if b.register(x.base)[0] == 8 else "u32")
    fn.access = Access(store, space, b.place(base), x.offset, items, np.dtype(dtype))
    return fn


def shared_index(b, x):
    """fn(w) -> byte offsets in the CTA's own memory of a [base+offset] operand, wrapping below zero; or None."""
    base = x.base
    if isinstance(base, Reg) and b.register(base)[0] == 4:
        slot, offset = b.src(base, "u32"), x.offset

        def fn(w):
            return w.v[slot] + np.uint32(offset - w.cta.shared.base & 0xFFFFFFFF)

        return fn
    if isinstance(base, Symbol) and b.space_of(base) == "shared":
        at = np.full(32, b.addresses[base.name][1] + base.offset + x.offset, np.uint32)
        return lambda w: at
    return None


def _fast_shared_load(near, slots, dtype, count, slow):
    """Loads from the CTA's own memory; whatever is unusual (the index error of numpy included) goes to `slow`."""
    size = dtype.itemsize
    total = size * count
    shift, mask = np.uint32(total.bit_length() - 1), total - 1
    ones = 0x0101010101010101 & (1 << 8 * min(total, 8)) - 1  # one byte per initialised byte

    def fn(w, m):
        index = near(w)
        if m is not True:
            index = index[m]
        memory = w.cta.shared
        at = index >> shift
        try:
            ok = memory.init_words[total][at]
            rows = memory.rows[size, count][at]
        except IndexError:
            return slow(w, m)
        if int(_or(index)) & mask or int(_and(ok, axis=None)) != ones or memory.guarded:
            return slow(w, m)
        v = w.v
        if count == 1:
            slot = slots[0]
            if slot is not None:
                if m is True:
                    np.copyto(v[slot], rows.view(dtype), casting="unsafe")
                else:
                    v[slot][m] = rows.view(dtype)
            return None
        columns = rows.view(dtype)
        for j, slot in enumerate(slots):
            if slot is not None:
                if m is True:
                    np.copyto(v[slot], columns[:, j], casting="unsafe")
                else:
                    v[slot][m] = columns[:, j]
        return None

    return fn


_or = np.bitwise_or.reduce
_and = np.bitwise_and.reduce


def _fast_global_load(address, slots, dtype, count, what, slow):
    size = dtype.itemsize
    total = size * count
    shift, mask = total.bit_length() - 1, total - 1

    def fn(w, m):
        a = address(w)
        if m is not True:
            a = a[m]
        if int(_or(a)) & mask:
            return slow(w, m)
        memory = w.machine.memory
        rows = memory.rows[size, count][memory.indices(a, total, what) >> shift]
        v = w.v
        columns = rows.view(dtype)
        for j, slot in enumerate(slots):
            if slot is not None:
                column = columns if count == 1 else columns[:, j]
                if m is True:
                    np.copyto(v[slot], column, casting="unsafe")
                else:
                    v[slot][m] = column
        return None

    return fn


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
    items = tuple(b.place(s, unsigned) for s in slots)
    if space in ("shared", "shared::cta") and (near := shared_index(b, target)):
        fast = _fast_shared_store(near, slots, unsigned, count, slow)
        return _accessed(b, fast, True, "shared", target, items, unsigned)
    if space == "global":
        fast = _fast_global_store(address, slots, unsigned, count, what, slow)
        return _accessed(b, fast, True, "global", target, items, unsigned)
    return slow


def _gather(v, slots, m, unsigned, count):
    """The rows to store: [lanes] or [lanes, count]."""
    if count == 1:
        row = v[slots[0]]
        return (
            (row if m is True else row[m]).view(unsigned) if row.flags.c_contiguous else (row if m is True else row[m])
        )
    data = np.empty((32, count), unsigned)
    for j, slot in enumerate(slots):
        data[:, j] = v[slot].view(unsigned)
    return data if m is True else data[m]


def _fast_shared_store(near, slots, unsigned, count, slow):
    size = unsigned.itemsize
    total = size * count
    shift, mask = np.uint32(total.bit_length() - 1), total - 1

    def fn(w, m):
        index = near(w)
        if m is not True:
            index = index[m]
        memory = w.cta.shared
        if (
            int(_or(index)) & mask
            or memory.guarded
            or not int(_min(index)) >= 1024
            or int(_max(index)) + total > memory.size
        ):
            return slow(w, m)
        at = index >> shift
        memory.init_rows[total][at] = True
        memory.rows[size, count][at] = _gather(w.v, slots, m, unsigned, count)
        w.machine.progress += 1
        return None

    return fn


_min, _max = np.minimum.reduce, np.maximum.reduce


def _fast_global_store(address, slots, unsigned, count, what, slow):
    size = unsigned.itemsize
    total = size * count
    shift, mask = total.bit_length() - 1, total - 1

    def fn(w, m):
        a = address(w)
        if m is not True:
            a = a[m]
        if int(_or(a)) & mask:
            return slow(w, m)
        memory = w.machine.memory
        memory.rows[size, count][memory.indices(a, total, what, True) >> shift] = _gather(
            w.v, slots, m, unsigned, count
        )
        w.machine.progress += 1
        return None

    return fn
