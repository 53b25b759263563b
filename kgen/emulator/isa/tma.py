"""Tensor copies, bulk copies, reductions and bulk groups. PTX ISA §9.7.9.25, §9.7.9.27."""

from __future__ import annotations

import numpy as np

from kgen.emulator import tensorbox
from kgen.emulator.access import shared_offset
from kgen.emulator.isa.atomics import scalar_operation
from kgen.emulator.isa.helpers import nothing
from kgen.emulator.isa.mbarriers import active
from kgen.emulator.memory import GLOBAL_WINDOW
from kgen.emulator.registry import op
from kgen.emulator.tensormap import SIZE, TensorMap
from kgen.emulator.warp import RETRY
from kgen.errors import EmulatorError

_COMPLETE = "mbarrier::complete_tx::bytes"
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def read_map(machine, address: int, what: str) -> TensorMap:
    """The tensor map at a generic address."""
    if address >> 40 != GLOBAL_WINDOW >> 40:
        raise EmulatorError(f"{what}: the tensor map address {address:#x} is no generic address of global or param space")
    if address % 64:
        raise EmulatorError(f"{what}: a tensor map must be aligned to 64 bytes, {address:#x} is not")
    return TensorMap.from_bytes(machine.memory.read(address, SIZE, what).tobytes()).check()


def load_box(machine, box, memory, offset: int, dtype: str, what: str) -> None:
    """Copies a box from global memory to shared memory."""
    glob, n = machine.memory, box.unit_bytes
    at = box.shared_addresses(offset)
    inside = box.inside
    data = np.empty((at.size, n), np.uint8)
    if not inside.all():
        data[:] = box.fill
    if inside.any():
        source = box.addresses[inside]
        low, high = int(source.min()), int(source.max()) + n
        glob.check(low, high - low, what)
        data[inside] = glob.views[n][(source - glob.base) // n].view(np.uint8).reshape(-1, n) if n in glob.views else \
            glob.bytes[(source - glob.base)[:, None] + np.arange(n)]  # fmt: skip
    if n == 4:
        data = tensorbox.loaded_words(dtype, data.view(np.uint32)[:, 0]).view(np.uint8).reshape(-1, n)
    _scatter(memory, at, data)


def _scatter(memory, at, data) -> None:
    n = data.shape[1]
    if n in memory.views:
        memory.views[n][at // n] = np.ascontiguousarray(data).view(f"u{n}")[:, 0]
        memory.init_views[n][at // n] = np.full(1, 1, np.uint8).repeat(n).view(f"u{n}")[0]
        return
    where = at[:, None] + np.arange(n)
    memory.bytes[where] = data
    memory.init[where] = True


def _check_box(memory, offset: int, box, what: str) -> None:
    if offset % TensorMap.shared_alignment:
        raise EmulatorError(f"{what}: shared offset {offset:#x} is not a multiple of {TensorMap.shared_alignment}")
    if offset + box.shared_bytes > memory.size:
        raise EmulatorError(
            f"{what}: a box of {box.shared_bytes} bytes at shared offset {offset:#x} ends past the CTA's {memory.size:#x}"
        )


def _targets(w, memory, mask: int | None, what: str):
    """The CTAs that a copy writes: that of the destination, or those of the mask."""
    ctas = w.cta.cluster.ctas
    if mask is None:
        return [memory.cta]
    if mask == 0 or mask >> len(ctas):
        raise EmulatorError(f"{what}: the multicast mask {mask:#x} does not fit a cluster of {len(ctas)} CTAs")
    return [c for c in ctas if mask >> c.rank & 1]


def _land(cta, barrier_offset: int, nbytes: int, what: str) -> None:
    cta.table.at(barrier_offset, what).complete_tx(nbytes)


def _coords(b, address):
    return [b.src(x, "s32") for x in address.coords.items]


@op("cp.async.bulk.tensor")
def tensor(b, inst, mods):
    rank = int(mods.need("1d", "2d", "3d", "4d", "5d")[0])
    mode = mods.choose("tile", "tile::gather4", "tile::scatter4") or "tile"
    multicast, hint = mods.flag("multicast::cluster"), mods.flag("L2::cache_hint")
    group = mods.choose("cta_group::1", "cta_group::2")
    operands = list(inst.operands)
    if hint:
        operands.pop()
    if group == "cta_group::2":
        raise EmulatorError("cta_group::2 tensor copies are not modelled yet")
    if "bulk_group" in mods.left:
        mods.flag("bulk_group", "global", "shared::cta")
        return _tensor_store(b, inst, operands, rank, mode, None)
    mods.need(_COMPLETE)
    to = mods.need("shared::cluster", "shared::cta")
    mods.need("global")
    d, source, bar = operands[:3]
    mask = b.src(operands[3], "u16") if multicast else None
    dst, _ = b.address(d)
    tm, _ = b.address(source)
    coords = _coords(b, source)
    if len(coords) != (5 if mode != "tile" else rank):
        raise EmulatorError(f"{inst.name} with {len(coords)} coordinates")
    barrier, _ = b.address(bar)
    what, remote = inst.name, to == "shared::cluster"

    def fn(w, m):
        maps, dsts, bars = tm(w), dst(w), barrier(w)
        for lane in active(m):
            tmap = read_map(w.machine, int(maps[lane]), what)
            at = [int(w.v[c][lane]) for c in coords]
            if mode == "tile" and tmap.rank != rank:
                raise EmulatorError(f"{what}: the tensor map has rank {tmap.rank}")
            box = tmap.box(at) if mode == "tile" else tensorbox.gather_box(tmap, at[0], at[1:])
            memory, offset = shared_offset(w, int(dsts[lane]), 1, what, remote)
            owner, bar_offset = shared_offset(w, int(bars[lane]), 8, what, remote)
            if owner is not memory:
                raise EmulatorError(f"{what}: the barrier must be in the CTA of the destination")
            chosen = int(w.v[mask][lane]) if mask is not None else None
            for cta in _targets(w, memory, chosen, what):
                _check_box(cta.shared, offset, box, what)
                cta.table.at(bar_offset, what)

                def land(cta=cta, box=box, offset=offset, bar_offset=bar_offset, dtype=tmap.dtype.name):
                    load_box(w.machine, box, cta.shared, offset, dtype, what)
                    _land(cta, bar_offset, box.transaction_bytes, what)

                w.machine.pending.add(land, f"tensor load {at}", w.place())

    return fn


class Group:
    """Bulk operations of one thread between two commits."""

    def __init__(self):
        self.reads = self.writes = 0


def groups_of(w, lane: int) -> list:
    """[open group, committed groups...] of a thread."""
    return w.thread_state.setdefault(("bulk", lane), [Group()])


def queue_store(w, lane: int, read, write, label: str) -> None:
    """A bulk_group operation: `read()` gives the data, `write(data)` puts it away; two tasks."""
    group = groups_of(w, lane)[0]
    group.reads += 1
    group.writes += 1

    def first():
        data = read()
        group.reads -= 1

        def second():
            write(data)
            group.writes -= 1

        w.machine.pending.add(second, label, place)

    place = w.place()
    w.machine.pending.add(first, label, place)


def _tensor_store(b, inst, operands, rank, mode, reduction):
    target, source = operands[:2]
    tm, _ = b.address(target)
    coords = _coords(b, target)
    src, _ = b.address(source)
    what = inst.name

    def fn(w, m):
        maps, sources = tm(w), src(w)
        for lane in active(m):
            tmap = read_map(w.machine, int(maps[lane]), what)
            at = [int(w.v[c][lane]) for c in coords]
            if mode == "tile::scatter4":
                box = tensorbox.gather_box(tmap, at[0], at[1:])
            else:
                if tmap.rank != rank:
                    raise EmulatorError(f"{what}: the tensor map has rank {tmap.rank}")
                box = tmap.store_box(at)
            memory, offset = shared_offset(w, int(sources[lane]), 1, what, False)
            _check_box(memory, offset, box, what)
            read, write = _box_io(w, box, memory, offset, what, reduction, tmap)
            queue_store(w, lane, read, write, f"tensor store {at}")

    return fn


def _box_io(w, box, memory, offset, what, reduction, tmap):
    n, inside = box.unit_bytes, box.inside
    at = box.shared_addresses(offset)[inside]
    target = box.addresses[inside]
    glob = w.machine.memory

    def read():
        where = at[:, None] + np.arange(n)
        if not memory.init[where].all():
            w.machine.monitor.fail("shared-uninitialised", f"{what}: reads shared memory that was never written")
        return memory.bytes[where]

    def write(data):
        if not target.size:
            return
        low, high = int(target.min()), int(target.max()) + n
        glob.check(low, high - low, what, write=True)
        index = (target - glob.base)[:, None] + np.arange(n)
        if reduction is None:
            glob.bytes[index] = data
            return
        element = _ELEMENTS.get(tmap.dtype.name)
        if element is None:
            raise EmulatorError(f"{what}: reductions of {tmap.dtype.name} are not modelled")
        glob.bytes[index] = reduce_bytes(glob.bytes[index], data, element, reduction)

    return read, write


def _elements() -> dict:
    import ml_dtypes

    return {
        "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "INT32": np.int32, "UINT64": np.uint64,
        "INT64": np.int64, "FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64,
        "BFLOAT16": ml_dtypes.bfloat16, "FLOAT32_FTZ": np.float32,
    }  # fmt: skip


_ELEMENTS = _elements()


def reduce_bytes(old, data, element, name: str):
    """uint8 [n, bytes] of old `name` data, element by element."""
    a, x = (np.ascontiguousarray(v).view(element) for v in (old, data))
    whole = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    if name in whole:
        return whole[name](a, x).astype(element).view(np.uint8)
    f = scalar_operation(name)
    flat = [f(o, v, None) for o, v in zip(a.reshape(-1), x.reshape(-1), strict=True)]
    return np.array(flat, element).reshape(a.shape).view(np.uint8)


@op("cp.reduce.async.bulk.tensor")
def tensor_reduce(b, inst, mods):
    rank = int(mods.need("1d", "2d", "3d", "4d", "5d")[0])
    mods.flag("tile", "bulk_group", "global", "shared::cta")
    operands = list(inst.operands)
    if mods.flag("L2::cache_hint"):
        operands.pop()
    return _tensor_store(b, inst, operands, rank, "tile", mods.need(*_REDUCTIONS))


def _size(n: int, what: str) -> int:
    if n % 16:
        raise EmulatorError(f"{what}: {n} bytes is not a multiple of 16")
    return n


@op("cp.async.bulk")
def bulk(b, inst, mods):
    spaces = [x for x in mods.left if x in ("global", "shared::cta", "shared::cluster")]
    mods.flag("global", "shared::cta", "shared::cluster")
    multicast, hint = mods.flag("multicast::cluster"), mods.flag("L2::cache_hint")
    operands = list(inst.operands)
    if hint:
        operands.pop()
    if mods.flag("cp_mask"):
        raise EmulatorError("cp.async.bulk.cp_mask is not modelled")
    target, source, size = operands[:3]
    (dst, _), (src, _), size = b.address(target), b.address(source), b.src(size, "u32")
    what = inst.name
    if mods.flag("bulk_group"):
        return _bulk_store(dst, src, size, what, None)
    mods.need(_COMPLETE)
    barrier, _ = b.address(operands[3])
    mask = b.src(operands[4], "u16") if multicast else None
    to, origin = spaces

    def fn(w, m):
        for lane in active(m):
            n = _size(int(w.v[size][lane]), what)
            memory, offset = shared_offset(w, int(dst(w)[lane]), n, what, to == "shared::cluster")
            owner, bar_offset = shared_offset(w, int(barrier(w)[lane]), 8, what)
            start = int(src(w)[lane])
            if owner is not memory:
                raise EmulatorError(f"{what}: the barrier must be in the CTA of the destination")
            if offset % 16 or start % 16:
                raise EmulatorError(f"{what}: addresses {offset:#x} and {start:#x} must be multiples of 16")
            if origin == "global":
                w.machine.memory.check(start, n, what)
                read = lambda start=start, n=n: w.machine.memory.read(start, n, what)  # noqa: E731
            else:
                mine, from_ = shared_offset(w, start, n, what, False)
                read = lambda mine=mine, from_=from_, n=n: mine.bytes[from_ : from_ + n].copy()  # noqa: E731
            chosen = int(w.v[mask][lane]) if mask is not None else None
            for cta in _targets(w, memory, chosen, what):
                def land(cta=cta, read=read, offset=offset, n=n, bar_offset=bar_offset):
                    cta.shared.bytes[offset : offset + n] = read()
                    cta.shared.init[offset : offset + n] = True
                    _land(cta, bar_offset, n, what)

                w.machine.pending.add(land, "bulk load", w.place())

    return fn


def _bulk_store(dst, src, size, what, combine):
    def fn(w, m):
        for lane in active(m):
            n = _size(int(w.v[size][lane]), what)
            memory, offset = shared_offset(w, int(src(w)[lane]), n, what, False)
            target = int(dst(w)[lane])
            if offset % 16 or target % 16:
                raise EmulatorError(f"{what}: addresses {offset:#x} and {target:#x} must be multiples of 16")
            w.machine.memory.check(target, n, what, write=True)

            def read(memory=memory, offset=offset, n=n):
                return memory.bytes[offset : offset + n].copy()

            def write(data, target=target):
                if combine:
                    data = combine(w.machine.memory.read(target, data.size), data)
                w.machine.memory.write(target, data, what)

            queue_store(w, lane, read, write, "bulk store")

    return fn


@op("cp.reduce.async.bulk")
def bulk_reduce(b, inst, mods):
    import ml_dtypes

    mods.flag("global", "shared::cta", "noftz")
    if "shared::cluster" in mods.left:
        raise EmulatorError("cp.reduce.async.bulk to shared::cluster is not modelled")
    operands = list(inst.operands)
    if mods.flag("L2::cache_hint"):
        operands.pop()
    mods.need("bulk_group")
    types = {
        "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64,
        "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    }  # fmt: skip
    element, name = types[mods.need(*types)], mods.need(*_REDUCTIONS)
    (dst, _), (src, _), size = b.address(operands[0]), b.address(operands[1]), b.src(operands[2], "u32")
    return _bulk_store(dst, src, size, inst.name, lambda old, new: reduce_bytes(old, new, element, name))


@op("cp.async.bulk.commit_group")
def commit(b, inst, mods):
    def fn(w, m):
        for lane in active(m):
            groups = groups_of(w, lane)
            groups.insert(1, groups[0])
            groups[0] = Group()

    return fn


class _GroupWait:
    def __init__(self, groups, left: int, read: bool):
        self.groups, self.left, self.read = groups, left, read

    def ready(self) -> bool:
        return all(g.reads == 0 and (self.read or g.writes == 0) for old in self.groups for g in old[1 + self.left :])

    def describe(self) -> str:
        return f"bulk groups to finish (at most {self.left} may be pending)"


@op("cp.async.bulk.wait_group")
def wait_group(b, inst, mods):
    read = mods.flag("read")
    left = inst.operands[0].value

    def fn(w, m):
        wait = _GroupWait([groups_of(w, lane) for lane in active(m)], left, read)
        return None if wait.ready() else (RETRY, wait)

    return fn


@op("cp.async.bulk.prefetch", "prefetch.tensormap")
def prefetch(b, inst, mods):
    """Hints; a tensor map that is prefetched must still be one."""
    mods.left.clear()
    if inst.op != "prefetch":
        return nothing
    address, _ = b.address(inst.operands[0])
    what = inst.name

    def fn(w, m):
        a = address(w)
        read_map(w.machine, int(a[active(m)[0]]), what)

    return fn

