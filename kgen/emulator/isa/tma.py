"""Tensor copies, bulk copies, reductions and bulk groups. PTX ISA §9.7.9.25, §9.7.9.27. The units do the work."""

from __future__ import annotations

from kgen.emulator.access import shared_offset
from kgen.emulator.isa.helpers import nothing
from kgen.emulator.isa.mbarriers import active
from kgen.emulator.memory import GLOBAL_WINDOW, WINDOW_SHIFT
from kgen.emulator.registry import op
from kgen.emulator.tensormap import SIZE, TensorMap
from kgen.errors import EmulatorError

_COMPLETE = "mbarrier::complete_tx::bytes"
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_RANKS = ("1d", "2d", "3d", "4d", "5d")


def read_map(machine, address: int, what: str) -> TensorMap:
    """The tensor map at a generic address."""
    if address >> WINDOW_SHIFT != GLOBAL_WINDOW >> WINDOW_SHIFT:
        raise EmulatorError(
            f"{what}: the tensor map address {address:#x} is no generic address of global or param space"
        )
    if address % 64:
        raise EmulatorError(f"{what}: a tensor map must be aligned to 64 bytes, {address:#x} is not")
    data = machine.memory.read(address, SIZE, what).tobytes()
    if data not in machine.maps:
        machine.maps[data] = TensorMap.from_bytes(data).check()
    return machine.maps[data]


def map_name(machine, tmap: TensorMap) -> str:
    """The buffer that a tensor map describes."""
    buffer = machine.memory.find(tmap.address)
    return buffer.name if buffer is not None else f"{tmap.address:#x}"


def cluster_address(w, address: int, what: str, remote: bool = True, size: int = 1) -> int:
    """The 32-bit shared address of a shared or generic one, checked."""
    memory, offset = shared_offset(w, address, size, what, remote)
    return memory.base + offset


def _coords(b, address):
    return [b.src(x, "s32") for x in address.coords.items]


def _operands(inst, mods, multicast: bool):
    """The operands without cache policy, and the multicast mask if there is one."""
    operands = list(inst.operands)
    if mods.flag("L2::cache_hint"):
        operands.pop()
    return operands, operands.pop() if multicast else None


def _check_rank(tmap: TensorMap, rank: int, what: str) -> None:
    if tmap.rank != rank:
        raise EmulatorError(f"{what}: the tensor map has rank {tmap.rank}")


@op("cp.async.bulk.tensor")
def tensor(b, inst, mods):
    rank = int(mods.need(*_RANKS)[0])
    if any(x.startswith("im2col") for x in mods.left):
        raise EmulatorError(f"{inst.name}: im2col modes are not modelled")
    mode = mods.choose("tile", "tile::gather4", "tile::scatter4") or "tile"
    group = 2 if mods.choose("cta_group::1", "cta_group::2") == "cta_group::2" else 1
    operands, mask = _operands(inst, mods, mods.flag("multicast::cluster"))
    if mods.flag("bulk_group"):
        mods.flag("global", "shared::cta")
        return _store(b, inst, operands, rank, mode == "tile::scatter4", None)
    mods.need(_COMPLETE)
    remote = mods.need("shared::cluster", "shared::cta") == "shared::cluster"
    mods.need("global")
    gather = mode == "tile::gather4"
    (dst, _), (tm, _), (bar, _) = (b.address(x) for x in operands[:3])
    coords = _coords(b, operands[1])
    if len(coords) != (5 if gather else rank):
        raise EmulatorError(f"{inst.name} with {len(coords)} coordinates")
    mask = b.src(mask, "u16") if mask is not None else None
    what = inst.name

    def fn(w, m):
        maps, dsts, bars = tm(w), dst(w), bar(w)
        for lane in active(m):
            tmap = read_map(w.machine, int(maps[lane]), what)
            _check_rank(tmap, rank, what)
            w.cta.cluster.tma.load(
                w.actor, tmap, [int(w.v[c][lane]) for c in coords], cluster_address(w, int(dsts[lane]), what, remote),
                cluster_address(w, int(bars[lane]), what, size=8),
                mask=None if mask is None else int(w.v[mask][lane]), cta_group=group, gather4=gather,
                name=map_name(w.machine, tmap),
            )  # fmt: skip

    return fn


def _store(b, inst, operands, rank, scatter, reduction):
    (tm, _), (src, _) = b.address(operands[0]), b.address(operands[1])
    coords, what = _coords(b, operands[0]), inst.name

    def fn(w, m):
        maps, sources = tm(w), src(w)
        for lane in active(m):
            tmap = read_map(w.machine, int(maps[lane]), what)
            _check_rank(tmap, rank, what)
            w.cta.cluster.tma.store(
                w.actor, lane, tmap, [int(w.v[c][lane]) for c in coords],
                cluster_address(w, int(sources[lane]), what, False), op=reduction, scatter4=scatter,
                name=map_name(w.machine, tmap),
            )  # fmt: skip

    return fn


@op("cp.reduce.async.bulk.tensor")
def tensor_reduce(b, inst, mods):
    rank = int(mods.need(*_RANKS)[0])
    operands, _ = _operands(inst, mods, False)
    mods.flag("tile", "bulk_group", "global", "shared::cta")
    return _store(b, inst, operands, rank, False, mods.need(*_REDUCTIONS))


@op("cp.async.bulk", "cp.reduce.async.bulk")
def bulk(b, inst, mods):
    spaces = [x for x in mods.left if x in ("global", "shared::cta", "shared::cluster")]
    mods.flag("global", "shared::cta", "shared::cluster")
    kind = name = ""
    if inst.op == "cp" and inst.mods[0] == "reduce":
        mods.flag("noftz")
        name = mods.need(*_REDUCTIONS)
        kind = mods.need("u32", "s32", "u64", "s64", "b32", "b64", "f32", "f64", "f16", "bf16")
    cp_mask = mods.flag("cp_mask")
    operands = list(inst.operands)
    byte_mask = b.src(operands.pop(), "u16") if cp_mask else None
    if mods.flag("L2::cache_hint"):
        operands.pop()
    mask = b.src(operands.pop(), "u16") if mods.flag("multicast::cluster") else None
    (dst, _), (src, _), size = b.address(operands[0]), b.address(operands[1]), b.src(operands[2], "u32")
    what = inst.name
    if mods.flag("bulk_group"):

        def store(w, m):
            targets, sources, sizes = dst(w), src(w), w.v[size]
            for lane in active(m):
                n = int(sizes[lane])
                w.machine.memory.check(int(targets[lane]), n, what, write=True)
                at = cluster_address(w, int(sources[lane]), what, False, n)
                chosen = None if byte_mask is None else int(w.v[byte_mask][lane])
                w.cta.cluster.bulk.store(w.actor, lane, int(targets[lane]), at, n, cp_mask=chosen, op=name, kind=kind)

        return store
    mods.need(_COMPLETE)
    bar, _ = b.address(operands[3])
    remote, origin = spaces[0] == "shared::cluster", spaces[1]

    def load(w, m):
        targets, sources, sizes, bars = dst(w), src(w), w.v[size], bar(w)
        unit = w.cta.cluster.bulk
        for lane in active(m):
            n, source = int(sizes[lane]), int(sources[lane])
            to = cluster_address(w, int(targets[lane]), what, remote, n)
            barrier = cluster_address(w, int(bars[lane]), what, size=8)
            if origin == "global":
                w.machine.memory.check(source, n, what)
                unit.load(w.actor, to, source, n, barrier, mask=None if mask is None else int(w.v[mask][lane]))
            else:
                source = cluster_address(w, source, what, False, n)
                unit.shared_copy(w.actor, to, source, n, barrier, op=name, kind=kind)

    return load


@op("cp.async.bulk.commit_group")
def commit(b, inst, mods):
    def fn(w, m):
        for lane in active(m):
            w.cta.cluster.bulk.commit(w.actor, lane)

    return fn


@op("cp.async.bulk.wait_group")
def wait_group(b, inst, mods):
    read, left = mods.flag("read"), inst.operands[0].value

    def fn(w, m):
        for lane in active(m):
            w.cta.cluster.bulk.wait(w.actor, lane, left, read)
        w.machine.progress += 1

    return fn


@op("cp.async.bulk.prefetch", "prefetch.tensormap", "prefetch.param.tensormap", "prefetch.const.tensormap")
def prefetch(b, inst, mods):
    """Hints; a tensor map that is prefetched must still be one."""
    mods.left.clear()
    if inst.op != "prefetch":
        return nothing
    address, _ = b.address(inst.operands[0])
    what = inst.name

    def fn(w, m):
        read_map(w.machine, int(address(w)[active(m)[0]]), what)

    return fn


@op("tensormap.replace")
def replace(b, inst, mods):
    mods.flag("tile", "b1024", "b32", "b64")
    space = mods.need("global", "shared::cta")
    fields = (
        "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride", "elemtype",
        "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode",
    )  # fmt: skip
    name = mods.need(*fields)
    address, _ = b.address(inst.operands[0])
    *order, value = inst.operands[1:]
    order = b.src(order[0], "u32") if order else None
    value = b.src(value, "u64" if "b64" in inst.mods else "u32")
    what = inst.name

    def fn(w, m):
        a = address(w)
        for lane in active(m):
            ordinal = int(w.v[order][lane]) if order is not None else 0
            if space == "global":
                raw = w.machine.memory.read(int(a[lane]), SIZE, what)
            else:
                memory, at = shared_offset(w, int(a[lane]), SIZE, what, False)
                raw = memory.bytes[at : at + SIZE]
            new = TensorMap.from_bytes(raw.tobytes()).replaced(name, int(w.v[value][lane]), ordinal).to_bytes()
            if space == "global":
                w.machine.memory.write(int(a[lane]), new, what)
            else:
                memory.bytes[at : at + SIZE] = bytearray(new)
        w.machine.progress += 1

    return fn


@op("tensormap.cp_fenceproxy")
def copy_map(b, inst, mods):
    mods.left.clear()
    (dst, _), (src, _) = b.address(inst.operands[0]), b.address(inst.operands[1])
    what = inst.name

    def fn(w, m):
        lane = active(m)[0]
        memory, at = shared_offset(w, int(src(w)[lane]), SIZE, what, False)
        w.machine.memory.write(int(dst(w)[lane]), memory.bytes[at : at + SIZE].copy(), what)
        w.machine.progress += 1

    return fn
