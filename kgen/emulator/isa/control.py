"""Branches, ends, traps, waits of the warp, barriers of the CTA. PTX ISA §9.7.12, §9.7.13.1-3."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.helpers import nothing
from kgen.emulator.operands import Imm
from kgen.emulator.order import Meeting
from kgen.emulator.registry import op
from kgen.emulator.warp import EXIT, PART, SPLIT, SYNC, WAIT, YIELD, bitmask
from kgen.errors import EmulatorError


@op("bra", guards_itself=True)
def bra(b, inst, mods):
    mods.flag("uni")
    # A branch out of the end of the list goes to the implicit exit, which is the next index.
    if inst.guard is None:
        return lambda w, m: inst.operands[0].index
    slot, negated = b.src(inst.guard, "pred"), inst.guard.negated
    count = np.count_nonzero

    def fn(w, m):
        p = w.v[slot]
        if m is True:
            n = count(p)
            n = 32 - n if negated else n
            if n == 32:
                return inst.operands[0].index
            if n == 0:
                return None
            return (SPLIT, inst.operands[0].index, bitmask(~p if negated else p))
        p = m & ~p if negated else m & p
        n = count(p)
        if n == 0:
            return None
        if n == count(m):
            return inst.operands[0].index
        return (SPLIT, inst.operands[0].index, bitmask(p))

    return fn


@op("brx.idx", guards_itself=True)
def brx(b, inst, mods):
    mods.flag("uni")
    slot = b.src(inst.operands[0], "u32")
    table = b.flat.tables[inst.operands[1].name]
    guard = b.src(inst.guard, "pred") if inst.guard else None

    def fn(w, m):
        active = np.ones(32, bool) if m is True else m
        if guard is not None:
            p = w.v[guard] ^ inst.guard.negated
            active = active & p
            if not active.any():
                return None
        index = w.v[slot]
        first = int(index[active][0])
        if first >= len(table):
            raise EmulatorError(f"brx.idx: index {first} of a table of {len(table)}")
        same = active & (index == first)
        if same.sum() == bitmask(m).bit_count():
            return table[first].index
        # The other lanes come back to this instruction: they part here, one target after another.
        rest = bitmask(m) & ~bitmask(same)
        return (PART, table[first].index, bitmask(same), rest)

    return fn


@op("ret", "exit")
def end(b, inst, mods):
    mods.flag("uni")
    return lambda w, m: (EXIT, bitmask(m))


@op("trap", "brkpt")
def trap(b, inst, mods):
    def fn(w, m):
        raise EmulatorError(f"{inst.op}: the kernel stopped itself")

    return fn


@op("nanosleep")
def nanosleep(b, inst, mods):
    mods.last()
    return lambda w, m: (YIELD,)


@op("call")
def intrinsic(b, inst, mods):
    mods.flag("uni")
    name, results, arguments = inst.operands
    if name.name == "vprintf":
        from kgen.emulator.printf import bind_printf

        return bind_printf(b, results, arguments)
    if name.name == "__assertfail":

        def fn(w, m):
            raise EmulatorError("a device assertion failed")

        return fn
    raise EmulatorError(f"{name.name} has no body and is not a known intrinsic (vprintf, __assertfail)")


class NamedBarrier:
    """One of the 16 barriers of a CTA: counts threads (whole warps), releases all waiters at once."""

    def __init__(self):
        self.arrived, self.expected, self.generation = 0, 0, 0
        self.here: list[str] = []
        self.reduced: list[int] = []
        self.result = (0, True, False)
        self.meeting = Meeting()

    def arrive(self, w, index: int, count: int, what: str) -> int:
        """Registers one warp; the generation it belongs to."""
        if self.arrived and self.expected != count:
            raise EmulatorError(
                f"{what}: barrier {index} is used with {count} threads while {self.arrived} of {self.expected} wait"
            )
        if w.name in self.here:
            raise EmulatorError(f"{what}: this warp already arrived at barrier {index} in this generation")
        generation = self.generation
        self.expected = count
        self.arrived += 32
        self.here.append(w.name)
        self.meeting.arrive(w.actor)
        w.machine.progress += 1
        if self.arrived >= count:
            self.arrived, self.here = 0, []
            self.generation += 1
            self.meeting.complete()
            ones = self.reduced
            self.reduced = []
            self.result = (sum(p for p, _ in ones), all(p == n for p, n in ones), any(p for p, _ in ones))
        return generation


class _BarrierWait:
    def __init__(self, w, index: int, generation: int):
        self.w, self.cta, self.index, self.generation = w, w.cta, index, generation

    def ready(self) -> bool:
        barrier = self.cta.barriers[self.index]
        if barrier.generation == self.generation:
            return False
        barrier.meeting.leave(self.w.actor)
        return True

    def describe(self) -> str:
        bar = self.cta.barriers[self.index]
        here = ", ".join(n.rsplit(" ", 1)[-1] for n in bar.here)
        return f"barrier {self.index}: {bar.arrived} of {bar.expected} threads have arrived (warps {here})"


@op("bar.warp.sync")
def warp_sync(b, inst, mods):
    mask = b.src(inst.operands[0], "u32")

    def fn(w, m):
        if bitmask(m) != 0xFFFFFFFF:
            return gather(w, m, w.v[mask])
        w.actor.converge()
        return None

    return fn


def gather(w, m, masks):
    """None if the lanes of the (shared) membermask are here, else what the run loop needs to bring them."""
    lanes = bitmask(m)
    active = masks if m is True else masks[m]
    first = int(active[0])
    if not lanes & first:
        raise EmulatorError(f"the membermask {first:#x} does not name the executing lanes {lanes:#x}")
    need = first & w.live
    if need & ~lanes:
        return (SYNC, need)
    w.actor.converge()
    return None


def gather_values(w, m, masks, what: str):
    """As `gather`, for instructions that exchange values. Fails: warp-mask-exited.

    The document lets them go on without lanes that have exited, but what they read from those is undefined;
    the usual cause is a full mask inside a branch.
    """
    held = gather(w, m, masks)
    if held is None:
        lanes = bitmask(m)
        named = int((masks if m is True else masks[m])[0])
        if named & ~lanes:
            text = f"{what} by {w.name} names lanes {named & ~lanes:#010x}, which have exited without executing it"
            w.machine.monitor.fail("warp-mask-exited", text)
    return held


def gather_all(w, m):
    """As `gather`, for `.aligned` instructions: every live lane must come."""
    lanes = bitmask(m)
    return (SYNC, w.live) if w.live & ~lanes else None


@op("bar.sync", "bar.arrive", "barrier.sync", "barrier.arrive", "barrier.cta.sync", "barrier.cta.arrive",
    "bar.cta.sync", "bar.cta.arrive", "bar.red", "barrier.red", "bar.cta.red", "barrier.cta.red")  # fmt: skip
def bar(b, inst, mods):
    mods.flag("aligned")
    kind = next(k for k in ("sync", "arrive", "red") if k in inst.mods)
    operands = list(inst.operands)
    how = out = predicate = None
    if kind == "red":
        type_ = mods.last()
        how = mods.need("popc", "and", "or")
        out = b.dst(operands.pop(0), type_)
        last = operands.pop()
        predicate = (b.src(last, "pred"), getattr(last, "negated", False))
    index = b.src(operands[0], "u32")
    count = b.src(operands[1], "u32") if len(operands) > 1 else None
    fixed = operands[1].value if count is not None and isinstance(operands[1], Imm) else None
    if fixed is not None and fixed % 32:
        raise EmulatorError(f"{inst.name}: the thread count {fixed} is not a multiple of 32")
    what = inst.name

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        lane = 0 if m is True else int(np.flatnonzero(m)[0])
        i = int(w.v[index][lane])
        if i > 15:
            raise EmulatorError(f"{what}: barrier {i}, there are 16")
        n = int(w.v[count][lane]) if count is not None else w.cta.round_threads
        if n % 32 or n == 0:
            raise EmulatorError(f"{what}: the thread count {n} is not a positive multiple of 32")
        barrier = w.cta.barriers[i]
        if predicate:
            p = w.v[predicate[0]] ^ predicate[1]
            p = p if m is True else p[m]
            barrier.reduced.append((int(p.sum()), p.size))
        generation = barrier.arrive(w, i, n, what)
        w.machine.arrived_barrier(w, barrier, kind)
        if kind == "arrive":
            return None
        return (WAIT, _Reduced(w, m, i, generation, how, out) if how else _BarrierWait(w, i, generation))

    return fn


class _Reduced(_BarrierWait):
    def __init__(self, w, m, index, generation, how, out):
        super().__init__(w, index, generation)
        self.m, self.how, self.out = m, how, out

    def ready(self) -> bool:
        if not super().ready():
            return False
        value = self.cta.barriers[self.index].result[("popc", "and", "or").index(self.how)]
        np.copyto(self.w.v[self.out], value, casting="unsafe", where=self.m)
        return True


@op("fence", "membar")
def fence(b, inst, mods):
    """Generic fences order nothing here: generic accesses take effect at once and in program order."""
    mods.flag(
        "sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "gl", "proxy", "alias", "mbarrier_init"
    )
    mods.prefix("sync_restrict::")
    return fence_init if "mbarrier_init" in inst.mods else nothing


def fence_init(w, m):
    w.actor.fence_init()


@op("fence.proxy.async")
def proxy_fence(b, inst, mods):
    """Orders this thread's generic accesses before later asynchronous ones; kept per lane for the checks."""
    mods.flag("global", "shared::cta", "shared::cluster")

    def fn(w, m):
        w.actor.fence_async(None if m is True else m)

    return fn


@op("fence.proxy.tensormap::generic", "fence.proxy.async::generic")
def map_fence(b, inst, mods):
    mods.left.clear()
    return nothing
