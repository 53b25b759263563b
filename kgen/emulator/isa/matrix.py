"""ldmatrix, stmatrix, movmatrix and mma.sync. PTX ISA §9.7.14.5."""

from __future__ import annotations

import re

import numpy as np

from kgen.emulator import fragments, mma
from kgen.emulator.access import check_alignment, places
from kgen.emulator.bursts import Access
from kgen.emulator.checks import check_read, mark_write
from kgen.emulator.isa.control import gather_all
from kgen.emulator.isa.helpers import put
from kgen.emulator.operands import Reg, Vector
from kgen.emulator.registry import op
from kgen.errors import EmulatorError


def _shape(mods) -> tuple[int, bool]:
    mods.need("m8n8")
    if mods.last() != "b16":
        raise EmulatorError("the .m8n8 forms of ldmatrix and stmatrix move .b16")
    mods.flag("sync", "aligned", "shared", "shared::cta")
    return {"x1": 1, "x2": 2, "x4": 4}[mods.need("x1", "x2", "x4")], mods.flag("trans")


def _shape_b8(mods) -> tuple[str, int, str]:
    """(shape, number of address lanes / 8, element format) of the b8 forms."""
    shape, source = mods.need("m16n16", "m8n16", "m16n8"), mods.last()
    trans = mods.flag("trans")
    if source in ("b4x16_p64", "b6x16_p32"):
        mods.need("b8x16")
    elif source != "b8" or shape == "m8n16":
        raise EmulatorError(f"{mods.inst.name} does not exist")
    if trans != (shape != "m8n16"):
        raise EmulatorError(f"{mods.inst.name}: .trans belongs to .m16n16 and .m16n8, and to no other .b8 shape")
    mods.flag("sync", "aligned", "shared", "shared::cta")
    return shape, {"x1": 1, "x2": 2, "x4": 4}[mods.need("x1", "x2", "x4")], source


def _rows(w, address, count, what, write):
    a = address(w)[: 8 * count]
    check_alignment(a, 16, what)
    ((_, _, memory, index),) = places(w, a, True, 16, "shared::cta", what, write)
    return memory, index


def _shared_address(b, x):
    address, _ = b.address(x)

    def fn(w):
        a = address(w)
        # The 64-bit generic form is also accepted by the assembler.
        return a & np.uint64(0xFFFFFFFF) if int(a[0]) >> 40 else a

    return fn


@op("ldmatrix")
def ldmatrix(b, inst, mods):
    if "m8n8" not in mods.left:
        return _ldmatrix_b8(b, inst, mods)
    count, trans = _shape(mods)
    d, source = inst.operands
    outs = [b.dst(x, "b32") for x in (d.items if isinstance(d, Vector) else (d,))]
    address, what = _shared_address(b, source), inst.name
    lane, element, _ = fragments.ldmatrix(count, trans)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        memory, index = _rows(w, address, count, what, False)
        check_read(w, memory, index, 16, what)
        halves = memory.views[2][(index[lane] >> 1) + element].astype(np.uint32)
        words = halves[:, :, 0] | halves[:, :, 1] << np.uint32(16)
        for j, out in enumerate(outs):
            if out is not None:
                put(w.v[out], words[:, j], m)
        return None

    return fn


@op("stmatrix")
def stmatrix(b, inst, mods):
    if "m8n8" not in mods.left:
        return _stmatrix_b8(b, inst, mods)
    count, trans = _shape(mods)
    target, s = inst.operands
    slots = [b.src(x, "b32") for x in (s.items if isinstance(s, Vector) else (s,))]
    address, what = _shared_address(b, target), inst.name
    lane, element, _ = fragments.ldmatrix(count, trans)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        memory, index = _rows(w, address, count, what, True)
        mark_write(w, memory, index, 16, what)
        words = np.stack([w.v[s] for s in slots], 1)
        halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], 2).astype(np.uint16)
        memory.views[2][(index[lane] >> 1) + element] = halves
        w.machine.progress += 1
        return None

    base = _near(b, target)
    if base is not None:
        items, kind = tuple(b.place(s) for s in slots), "trans" if trans else "plain"
        fn.access = Access(True, "shared", base, target.offset, items, np.dtype(np.uint32), kind)
    return fn


def _near(b, x) -> tuple[int, int] | None:
    """The place of the base of a 32-bit shared address."""
    if isinstance(x.base, Reg) and b.register(x.base)[0] == 4:
        return b.place(b.src(x.base, "u32"))
    return None


def _ldmatrix_b8(b, inst, mods):
    shape, count, source = _shape_b8(mods)
    d, x = inst.operands
    lane, byte = fragments.ldmatrix_b8(shape, count)
    outs = [b.dst(r, "b32") for r in (d.items if isinstance(d, Vector) else (d,))]
    if len(outs) != lane.shape[1] or shape == "m16n8":
        raise EmulatorError(f"{inst.name} does not exist, or not with {len(outs)} registers")
    address, what = _shared_address(b, x), inst.name
    eights = 2 * count if shape == "m16n16" else count
    used = {"b8": 16, "b6x16_p32": 12, "b4x16_p64": 8}[source]

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        memory, index = _rows(w, address, eights, what, False)
        for at in range(0, used, 4):
            check_read(w, memory, index + at, 4, what)
        rows = fragments.expand(memory.bytes[index[:, None] + np.arange(16)], source)
        words = fragments.pack(rows[lane, byte], 8)
        for j, out in enumerate(outs):
            if out is not None:
                put(w.v[out], words[:, j], m)
        return None

    return fn


def _stmatrix_b8(b, inst, mods):
    shape, count, source = _shape_b8(mods)
    if shape != "m16n8" or source != "b8":
        raise EmulatorError(f"{inst.name} does not exist")
    target, s = inst.operands
    slots = [b.src(x, "b32") for x in (s.items if isinstance(s, Vector) else (s,))]
    if len(slots) != count:
        raise EmulatorError(f"{inst.name} needs {count} registers")
    address, what = _shared_address(b, target), inst.name
    lane, byte = fragments.ldmatrix_b8(shape, count)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        memory, index = _rows(w, address, count, what, True)
        mark_write(w, memory, index, 16, what)
        memory.bytes[index[lane] + byte] = fragments.unpack(np.stack([w.v[s] for s in slots], 1), 8)
        w.machine.progress += 1
        return None

    return fn


@op("movmatrix")
def movmatrix(b, inst, mods):
    mods.last()
    mods.flag("sync", "aligned", "m8n8", "trans")
    out, a = b.dst(inst.operands[0], "b32"), b.src(inst.operands[1], "b32")

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        halves = w.v[a].view(np.uint16).reshape(8, 8).T.copy()
        put(w.v[out], halves.view(np.uint32).reshape(32), m)
        return None

    return fn


_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}


@op("mma.sync")
def mma_sync(b, inst, mods):
    mods.flag("aligned", "row", "col")
    saturate = mods.flag("satfinite")
    if any(w.startswith(("kind::", "sp")) or w == "block_scale" for w in mods.left):
        raise EmulatorError(f"{inst.name} is not modelled (block-scaled and sparse forms)")
    shape = next((w for w in mods.left if re.fullmatch(r"m\d+n\d+k\d+", w)), "")
    mods.flag(shape)
    match = re.fullmatch(r"m16n8k(\d+)", shape)
    c_type, b_type, a_type, d_type = (mods.last() for _ in range(4))
    if match is None or a_type not in _BITS or b_type not in _BITS:
        raise EmulatorError(f"{inst.name}: only m16n8 shapes of f16, bf16, tf32, fp8 and 8-bit integers are modelled")
    k = int(match[1])
    d, a, bb, c = inst.operands
    packed = d_type == "f16"
    outs = [b.dst(x, "b32") for x in d.items]
    a_slots, b_slots = [b.src(x, "b32") for x in a.items], [b.src(x, "b32") for x in bb.items]
    c_slots = [b.src(x, "b32") for x in c.items]
    a_map, b_map = fragments.mma_a(_BITS[a_type], k), fragments.mma_b(_BITS[b_type], k)
    c_map = fragments.mma_c(c_type == "f16")
    d_map = fragments.mma_c(packed)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        v = w.v
        a_codes = np.zeros((16, k), np.uint32)
        a_codes[a_map] = fragments.unpack(np.stack([v[s] for s in a_slots], 1), _BITS[a_type])
        b_codes = np.zeros((8, k), np.uint32)
        b_codes[b_map[1], b_map[0]] = fragments.unpack(np.stack([v[s] for s in b_slots], 1), _BITS[b_type])
        cs = np.stack([v[s] for s in c_slots], 1)
        c_codes = np.zeros((16, 8), np.uint32)
        c_codes[c_map] = fragments.unpack(cs, 16) if c_type == "f16" else cs
        r = matmul(w, a_codes, b_codes, c_codes, a_type, b_type, d_type, "mma.sync", saturate)
        words = fragments.pack(r[d_map].astype(np.uint32), 16) if packed else r[d_map]
        for j, out in enumerate(outs):
            put(v[out], words[:, j], m)
        return None

    return fn


def matmul(w, a, b, c, a_type, b_type, d_type, unit, saturate=False, **options):
    """Codes of A B^T + C in the launch's arithmetic."""
    how = w.machine.arithmetic
    return mma.mma(a, b, c, a_type, b_type, d_type, unit=unit, arithmetic=how, saturate=saturate, **options)
