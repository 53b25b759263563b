"""tcgen05: allocation, ld/st, mma, cp, commit, waits and fences. PTX ISA §9.7.16. The units do the work."""

from __future__ import annotations

import re

import numpy as np

from kgen.emulator.idesc import decode_idesc
from kgen.emulator.isa.control import gather_all
from kgen.emulator.isa.mbarriers import active
from kgen.emulator.isa.tma import cluster_address
from kgen.emulator.operands import Address, Imm, Reg, Vector
from kgen.emulator.registry import op
from kgen.emulator.tcgen05_mma import MmaOperands
from kgen.emulator.warp import RETRY
from kgen.errors import EmulatorError

_GROUPS = ("cta_group::1", "cta_group::2")


def _group(mods) -> int:
    return int(mods.need(*_GROUPS)[-1])


def _first(m) -> int:
    return 0 if m is True else int(np.flatnonzero(m)[0])


# --- allocation -------------------------------------------------------------------------------------------


class _AllocWait:
    def __init__(self, w, count: int, call: dict):
        self.w, self.count, self.call = w, count, call

    def ready(self) -> bool:
        return _try_alloc(self.w, self.count, self.call)

    def describe(self) -> str:
        if self.call["ranks"] != self.call["need"]:
            return f"tcgen05.alloc of {self.count} columns, which the pair's other CTA has not reached"
        return f"tcgen05.alloc: {self.count} columns of tensor memory to become free"


def _try_alloc(w, count: int, call: dict) -> bool:
    """Allocates once all CTAs of the group take part and have room; the column is then in the call."""
    if call["column"] is not None:
        return True
    if call["ranks"] != call["need"]:
        return False
    ctas = [w.cta.cluster.ctas[r] for r in sorted(call["need"])]
    columns = [c.tmem.alloc(c.name, count) for c in ctas]
    if None in columns:
        for cta, column in zip(ctas, columns, strict=True):
            if column is not None:
                cta.tmem.dealloc(cta.name, column, count)
        return False
    if len(set(columns)) > 1:
        raise EmulatorError("tcgen05.alloc.cta_group::2: the two CTAs have different columns free")
    call["column"] = columns[0]
    w.machine.progress += 1
    return True


def _launched(w, ranks: set[int], what: str) -> None:
    """Fails tcgen05-peer-unlaunched. PTX ISA, tcgen05.alloc: with cta_group::2 the issuing warp must make sure that the
    peer CTA is launched; so something that a warp of that CTA has done comes before, as a cluster barrier."""
    for rank in sorted(ranks - {w.cta.rank}):
        if not any(w.actor.follows(x.actor.clock_fact, 0) for x in w.cta.cluster.ctas[rank].warps):
            text = f"{what} by {w.name}: nothing says that CTA {rank} of its pair runs already"
            w.machine.monitor.fail("tcgen05-peer-unlaunched", text)


@op("tcgen05.alloc")
def alloc(b, inst, mods):
    group = _group(mods)
    mods.flag("sync", "aligned", "shared::cta", "b32")
    (dst, _), count = b.address(inst.operands[0]), b.src(inst.operands[1], "u32")
    what = inst.name

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        n, cta = int(w.v[count][0]), w.cta
        call = w.alloc_call
        if call is None:
            ranks = {cta.rank} if group == 1 else {cta.rank & ~1, cta.rank | 1}
            if max(ranks) >= len(cta.cluster.ctas):
                raise EmulatorError(f"{what}: cta_group::2 needs a cluster of an even number of CTAs")
            _launched(w, ranks, what)
            calls = cta.cluster.alloc_calls
            key = min(ranks)
            call = next((c for c in calls.get(key, []) if group == 2 and cta.rank not in c["ranks"]), None)
            if call is None:
                call = {"ranks": set(), "need": ranks, "column": None, "count": n}
                calls.setdefault(key, []).append(call)
            if call["count"] != n:
                raise EmulatorError(f"{what}: the pair's CTAs ask for {call['count']} and {n} columns")
            call["ranks"].add(cta.rank)
            w.alloc_call = call
        if not _try_alloc(w, n, call):
            return (RETRY, _AllocWait(w, n, call))
        w.alloc_call = None
        address = cluster_address(w, int(dst(w)[0]), what, False, 4)
        offset = address & 0xFFFFFF
        cta.hazards.generic_write(w.actor, np.array([offset]), 4, what, np.array([0]))
        cta.shared.views[4][offset // 4] = call["column"]
        w.machine.progress += 1
        return None

    return fn


@op("tcgen05.dealloc")
def dealloc(b, inst, mods):
    _group(mods)
    mods.flag("sync", "aligned", "b32")
    address, count = b.src(inst.operands[0], "u32"), b.src(inst.operands[1], "u32")

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        w.cta.tmem.dealloc(w.cta.name, int(w.v[address][0]), int(w.v[count][0]), w.actor)
        w.machine.progress += 1
        return None

    return fn


@op("tcgen05.relinquish_alloc_permit")
def relinquish(b, inst, mods):
    _group(mods)
    mods.flag("sync", "aligned")

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        w.cta.tmem.relinquish(w.cta.name)
        return None

    return fn


# --- loads and stores ---------------------------------------------------------------------------------------


def _shape(mods) -> tuple[str, int]:
    shape = mods.need("16x64b", "16x128b", "16x256b", "32x32b", "16x32bx2")
    number = next((x for x in mods.left if re.fullmatch(r"x\d+", x)), "x1")
    mods.flag(number, "sync", "aligned", "b32")
    return shape, int(number[1:])


@op("tcgen05.ld")
def ld(b, inst, mods):
    shape, num = _shape(mods)
    pack = mods.flag("pack::16b")
    if mods.flag("red"):
        raise EmulatorError("tcgen05.ld.red is not modelled")
    d, source, *rest = inst.operands
    items = d.items if isinstance(d, Vector) else (d,)
    outs = [b.dst(x, "b32") for x in items]
    names = frozenset(x.name for x in items if isinstance(x, Reg))
    address, _ = b.address(source)
    split = rest[0].value if rest else 0

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held

        def write(words):
            if words.shape[1] != len(outs):
                raise EmulatorError(f"{inst.name}: needs {words.shape[1]} registers")
            for i, out in enumerate(outs):
                if out is not None:
                    w.v[out][:] = words[:, i]

        w.cta.tmem_access.ld(w.actor, w.index, shape, num, int(address(w)[_first(m)]), write, pack, split)
        w.loading.update(names)
        return None

    return fn


@op("tcgen05.st")
def st(b, inst, mods):
    shape, num = _shape(mods)
    unpack = mods.flag("unpack::16b")
    target, *rest = inst.operands
    split = rest.pop(0).value if isinstance(rest[0], Imm) and len(rest) > 1 else 0
    s = rest[0]
    slots = [b.src(x, "b32") for x in (s.items if isinstance(s, Vector) else (s,))]
    address, _ = b.address(target)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        values = np.stack([w.v[s] for s in slots], 1)
        w.cta.tmem_access.st(w.actor, w.index, shape, num, int(address(w)[_first(m)]), values, unpack, split)
        return None

    return fn


@op("tcgen05.wait::ld", "tcgen05.wait::st")
def wait(b, inst, mods):
    mods.flag("sync", "aligned")
    load = inst.mods[0] == "wait::ld"

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        if load:
            w.cta.tmem_access.wait_ld(w.actor)
            w.loading.clear()
        else:
            w.cta.tmem_access.wait_st(w.actor)
        w.machine.progress += 1
        return None

    return fn


@op("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def fence(b, inst, mods):
    before = inst.mods[0] == "fence::before_thread_sync"

    def fn(w, m):
        unit = w.cta.cluster.tcgen05
        (unit.fence_before if before else unit.fence_after)(w.actor)

    return fn


# --- matrix instructions --------------------------------------------------------------------------------------

_KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
_VECTORS = {
    ("mxf8f6f4", ""): 1, ("mxf8f6f4", "block32"): 1, ("mxf8f6f4", "scale_vec::1X"): 1,
    ("mxf4", ""): 2, ("mxf4", "block32"): 2, ("mxf4", "scale_vec::2X"): 2,
    ("mxf4nvf4", "block16"): 4, ("mxf4nvf4", "scale_vec::4X"): 4,
    ("mxf4nvf4", "block32"): 2, ("mxf4nvf4", "scale_vec::2X"): 2,
}  # fmt: skip


@op("tcgen05.mma", "tcgen05.mma.ws")
def mma(b, inst, mods):
    ws = mods.flag("ws") or "ws" in inst.mods
    if mods.flag("sp"):
        raise EmulatorError(f"{inst.name}: sparse forms are not modelled")
    if mods.flag("ashift"):
        raise EmulatorError(f"{inst.name}: .ashift is not modelled: which row of A moves where stands only in a figure")
    group = _group(mods)
    mods.prefix("collector::")
    kind = mods.need(*(f"kind::{k}" for k in _KINDS))[6:]
    scaled = mods.flag("block_scale")
    vector = None
    if scaled:
        size = mods.choose("block16", "block32", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X") or ""
        if (kind, size) not in _VECTORS:
            raise EmulatorError(f"{inst.name}: kind::{kind} needs a block size (.block16, .block32 or .scale_vec)")
        vector = _VECTORS[kind, size]
    d, a, bd, idesc, *rest = inst.operands
    d, _ = b.address(d)
    a_tmem = b.address(a)[0] if isinstance(a, Address) else None
    a_slot = None if a_tmem is not None else b.src(a, "u64")
    b_slot, idesc = b.src(bd, "u64"), b.src(idesc, "u32")
    scales = [b.address(rest.pop(0))[0] for _ in range(2)] if scaled else None
    masks = [b.src(x, "u32") for x in rest.pop(0).items] if rest and isinstance(rest[0], Vector) else []
    enable = rest.pop(0)
    enable_slot = b.src(enable, "pred") if isinstance(enable, Reg) else None
    shift, columns = 0, None
    if rest and ws:
        columns = b.src(rest.pop(0), "u64")
    elif rest:
        shift = rest.pop(0).value
    if rest or len(masks) not in (0, 4 * group):
        raise EmulatorError(f"{inst.name}: wrong operands")

    def fn(w, m):
        for lane in active(m):
            v = w.v
            if columns is not None and int(v[columns][lane]):
                raise EmulatorError(f"{inst.name}: a zero-column mask is not modelled")
            words = [int(v[x][lane]) for x in masks]
            masked = tuple(
                sum(x << 32 * i for i, x in enumerate(words[4 * g : 4 * g + 4])) for g in range(len(words) // 4)
            )
            on = bool(v[enable_slot][lane]) ^ enable.negated if enable_slot is not None else bool(enable.value)
            operands = MmaOperands(
                decode_idesc(int(v[idesc][lane]), kind), int(d(w)[lane]), int(v[b_slot][lane]),
                None if a_slot is None else int(v[a_slot][lane]), None if a_tmem is None else int(a_tmem(w)[lane]),
                on, ws, masked, vector, *((int(s(w)[lane]) for s in scales) if scales else (0, 0)), shift,
            )  # fmt: skip
            w.cta.cluster.tcgen05.mma(w.actor, w.cta.rank, group, operands)

    return fn


@op("tcgen05.cp")
def cp(b, inst, mods):
    group = _group(mods)
    shape = mods.need("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
    spread = mods.choose("warpx2::02_13", "warpx2::01_23", "warpx4")
    if spread:
        shape += "." + spread
    formats = mods.prefix("b8x16", "b4x16", "b6x16")
    address, _ = b.address(inst.operands[0])
    desc = b.src(inst.operands[1], "u64")

    def fn(w, m):
        for lane in active(m):
            w.cta.cluster.tcgen05.cp(
                w.actor, w.cta.rank, group, shape, int(address(w)[lane]), int(w.v[desc][lane]), ".".join(formats)
            )

    return fn


@op("tcgen05.shift")
def shift(b, inst, mods):
    raise EmulatorError(
        f"{inst.name} is not modelled: the text says that 32-byte elements of all rows but the last move down one row, "
        "not how many columns take part nor what the first row holds afterwards"
    )


@op("tcgen05.commit")
def commit(b, inst, mods):
    group = _group(mods)
    mods.need("mbarrier::arrive::one")
    mods.flag("shared::cluster", "b64")
    multicast = mods.flag("multicast::cluster")
    address, _ = b.address(inst.operands[0])
    mask = b.src(inst.operands[1], "u16") if multicast else None
    what = inst.name

    def fn(w, m):
        for lane in active(m):
            at = cluster_address(w, int(address(w)[lane]), what, True, 8)
            chosen = None if mask is None else int(w.v[mask][lane])
            w.cta.cluster.tcgen05.commit(w.actor, w.cta.rank, group, at, chosen)

    return fn
