"""cp.async of single threads, st.async, red.async, st.bulk. PTX ISA §9.7.9.25.3, §9.7.9.13-14, §9.7.13.8."""

from __future__ import annotations

import numpy as np

from kgen.emulator.access import shared_offset
from kgen.emulator.checks import mark_write
from kgen.emulator.hazards import words_of
from kgen.emulator.isa.atomics import scalar_operation
from kgen.emulator.isa.mbarriers import active
from kgen.emulator.isa.tma import cluster_address
from kgen.emulator.operands import Imm, Vector
from kgen.emulator.program import dtype_of
from kgen.emulator.registry import op
from kgen.errors import EmulatorError


@op("cp.async.ca", "cp.async.cg")
def copy(b, inst, mods):
    mods.flag("shared", "shared::cta", "global")
    mods.prefix("L2::")
    (dst, _), (src, _) = b.address(inst.operands[0]), b.address(inst.operands[1])
    nbytes = inst.operands[2].value
    size = None
    if len(inst.operands) > 3:
        x = inst.operands[3]
        if isinstance(x, Imm) or b.register(x)[0] == 4:
            size = b.src(x, "u32")
        elif b.register(x)[0] == "pred":
            size = ("ignore", b.src(x, "pred"))
    what = inst.name

    def fn(w, m):
        lanes = np.array(active(m))
        targets, sources = dst(w)[lanes], src(w)[lanes]
        if size is None:
            sizes = np.full(lanes.size, nbytes)
        elif isinstance(size, tuple):
            sizes = np.where(w.v[size[1]][lanes], 0, nbytes)
        else:
            sizes = w.v[size][lanes]
        w.machine.memory.indices(sources[sizes > 0], nbytes, what) if (sizes == nbytes).all() else None
        at = [cluster_address(w, int(a), what, False, nbytes) for a in targets]
        w.cta.cluster.cp_async.copy(w.actor, lanes, at, sources.astype(np.int64), nbytes, sizes)

    return fn


@op("cp.async.commit_group")
def commit(b, inst, mods):
    return lambda w, m: w.cta.cluster.cp_async.commit(w.actor, active(m))


@op("cp.async.wait_group")
def wait(b, inst, mods):
    left = inst.operands[0].value
    return lambda w, m: w.cta.cluster.cp_async.wait(w.actor, active(m), left)


@op("cp.async.wait_all")
def wait_all(b, inst, mods):
    return lambda w, m: w.cta.cluster.cp_async.wait_all(w.actor, active(m))


@op("cp.async.mbarrier.arrive")
def arrive(b, inst, mods):
    noinc = mods.flag("noinc")
    mods.flag("shared", "shared::cta", "b64")
    address, _ = b.address(inst.operands[0])
    what = inst.name

    def fn(w, m):
        a = address(w)
        lanes = active(m)
        for x in sorted({int(a[lane]) for lane in lanes}):
            same = [lane for lane in lanes if int(a[lane]) == x]
            w.cta.cluster.cp_async.arrive(w.actor, same, cluster_address(w, x, what, False, 8), noinc)

    return fn


@op("st.bulk")
def st_bulk(b, inst, mods):
    """Zeroes `size` bytes (a multiple of 8) of shared memory. PTX ISA §9.7.9.13."""
    mods.flag("weak", "shared::cta")
    target, size, value = inst.operands
    if not isinstance(value, Imm) or value.value != 0:
        raise EmulatorError("st.bulk stores zeroes: its last operand must be 0")
    address, _ = b.address(target)
    size, what = b.src(size, "u64"), inst.name

    def fn(w, m):
        a, sizes = address(w), w.v[size]
        for lane in active(m):
            n = int(sizes[lane])
            if n % 8 or int(a[lane]) % 8:
                raise EmulatorError(f"{what}: address and size must be multiples of 8")
            if n == 0:
                continue
            memory, offset = shared_offset(w, int(a[lane]), n, what, cluster=False)
            mark_write(w, memory, np.arange(offset, offset + n, 8), 8, what, np.full(n // 8, lane))
            memory.bytes[offset : offset + n] = 0
        w.machine.progress += 1

    return fn


@op("red.async")
def red_async(b, inst, mods):
    """A reduction on another CTA's memory that completes bytes on a barrier there. PTX ISA §9.7.13.8.

    It takes effect at once when it lands, so that reductions of one word are never in each other's way.
    """
    if mods.flag("mmio") or "global" in mods.left:
        raise EmulatorError(f"{inst.name}: .mmio reductions on global memory are not modelled")
    type_, name = mods.last(), mods.need("inc", "dec", "min", "max", "add", "and", "or", "xor")
    mods.flag("relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes")
    (dst, _), (bar, _) = b.address(inst.operands[0]), b.address(inst.operands[2])
    source, dtype = b.src(inst.operands[1], type_), np.dtype(dtype_of(type_))
    size, operate, what = dtype.itemsize, scalar_operation(name), inst.name

    def fn(w, m):
        targets, bars = dst(w), bar(w)
        for lane in active(m):
            memory, offset = shared_offset(w, int(targets[lane]), size, what)
            owner, at = shared_offset(w, int(bars[lane]), 8, what)
            if offset % size:
                raise EmulatorError(f"{what}: address {offset:#x} is not a multiple of {size}")
            if owner is not memory:
                w.machine.monitor.fail("tma-barrier-cta", f"{what}: data and barrier must lie in the same CTA")
            facts, x = w.actor.release(), w.v[source][lane]

            def land(memory=memory, offset=offset, x=x, owner=owner, at=at, facts=facts):
                words = words_of(np.array([offset]), size).reshape(-1)
                hazards = memory.cta.hazards
                check_initialised(memory, offset, size, what)
                flight = hazards.begin_write(words, facts, what, generic=True)
                view = memory.views[size].view(dtype)
                with np.errstate(all="ignore"):
                    view[offset // size] = operate(view[offset // size], x, None)
                barrier = owner.cta.table.at(at, what)
                hazards.landed(flight, barrier.fact, barrier.phase, barrier.name)
                barrier.complete_tx(size, facts)

            w.machine.agenda.add("red.async", w.name, what, land)

    return fn


def check_initialised(memory, offset: int, size: int, what: str) -> None:
    """uninitialised-shared for a reduction onto bytes that nobody has written."""
    if not memory.init[offset : offset + size].all():
        text = f"{what}: shared memory at offset {offset:#x} of {memory.cta.name} was never written"
        memory.cta.machine.monitor.fail("uninitialised-shared", text)


@op("multimem.ld_reduce", "multimem.st", "multimem.red", "multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk")
def multimem(b, inst, mods):
    raise EmulatorError(
        f"{inst.name} is not modelled: a multicast address stands for one location on each of several devices, "
        "and the emulator has one device"
    )


@op("st.async")
def st_async(b, inst, mods):
    """A store to another CTA's memory that completes bytes on a barrier there."""
    type_ = mods.last()
    mods.flag("weak", "shared::cluster", "mbarrier::complete_tx::bytes", "v2", "v4")
    (dst, _), (bar, _) = b.address(inst.operands[0]), b.address(inst.operands[2])
    source = inst.operands[1]
    slots = [b.src(x, type_) for x in (source.items if isinstance(source, Vector) else (source,))]
    size = np.dtype(dtype_of(type_)).itemsize * len(slots)
    what = inst.name

    def fn(w, m):
        targets, bars = dst(w), bar(w)
        for lane in active(m):
            data = np.concatenate([np.ascontiguousarray(w.v[s][lane : lane + 1]).view(np.uint8) for s in slots])
            memory, offset = shared_offset(w, int(targets[lane]), size, what)
            owner, at = shared_offset(w, int(bars[lane]), 8, what)
            if owner is not memory:
                w.machine.monitor.fail("tma-barrier-cta", f"{what}: data and barrier must lie in the same CTA")
            words = np.unique(words_of(np.array([offset]), size))
            owner.cta.table.at(at, what, w.actor)
            facts = w.actor.release()
            flight = memory.cta.hazards.begin_write(words, facts, what, generic=True)

            def land(memory=memory, offset=offset, data=data, owner=owner, at=at, flight=flight, facts=facts):
                memory.bytes[offset : offset + size] = data
                barrier = owner.cta.table.at(at, what)
                memory.cta.hazards.landed(flight, barrier.fact, barrier.phase, barrier.name)
                barrier.complete_tx(size, facts)

            w.machine.agenda.add("st.async", w.name, what, land)

    return fn
