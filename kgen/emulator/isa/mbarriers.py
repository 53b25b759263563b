"""mbarrier instructions. PTX ISA §9.7.13.15. The state machine is in mbarrier.py."""

from __future__ import annotations

import numpy as np

from kgen.emulator.access import shared_offset
from kgen.emulator.isa.helpers import put
from kgen.emulator.mbarrier import MBarrier
from kgen.emulator.operands import Pair, Sink
from kgen.emulator.registry import op
from kgen.emulator.warp import RETRY
from kgen.errors import EmulatorError

_ORDER = ("release", "acquire", "relaxed", "cta", "cluster")
_SPACES = ("shared", "shared::cta", "shared::cluster")


def active(m) -> list[int]:
    """Lane numbers of a mask."""
    return list(range(32)) if m is True else np.flatnonzero(m).tolist()


def barrier_at(w, address: int, what: str, remote: bool = True) -> MBarrier:
    """The barrier at a shared or generic address, of this CTA or (remote) another of the cluster."""
    memory, offset = shared_offset(w, address, 8, what, cluster=remote)
    barrier = memory.cta.table.at(offset, what, w.actor)
    if memory.cta is not w.cta:
        memory.cta.units.touched(w.actor.clock_fact, w.actor.clock, f"{what} by {w.name} on {barrier.name}", barrier)
    return barrier


def _common(b, inst, mods):
    mods.flag("b64")
    mods.flag(*_ORDER)
    return mods.choose(*_SPACES) or ""


@op("mbarrier.init")
def init(b, inst, mods):
    _common(b, inst, mods)
    address, _ = b.address(inst.operands[0])
    count, what = b.src(inst.operands[1], "u32"), inst.name

    def fn(w, m):
        a, n = address(w), w.v[count]
        for lane in active(m):
            memory, offset = shared_offset(w, int(a[lane]), 8, what, cluster=False)
            memory.cta.table.init(offset, int(n[lane]), actor=w.actor)
        w.machine.progress += 1

    return fn


@op("mbarrier.inval")
def inval(b, inst, mods):
    _common(b, inst, mods)
    address, _ = b.address(inst.operands[0])
    what = inst.name

    def fn(w, m):
        a = address(w)
        for lane in active(m):
            memory, offset = shared_offset(w, int(a[lane]), 8, what, cluster=False)
            memory.cta.table.inval(offset)
        w.machine.progress += 1

    return fn


@op("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(b, inst, mods):
    space = _common(b, inst, mods)
    expect, quiet = mods.flag("expect_tx"), mods.flag("noComplete")
    drop = inst.mods[0] == "arrive_drop"
    operands = list(inst.operands)
    token = None
    if len(operands) > 1 and not _is_address(operands[0]):
        d = operands.pop(0)
        token = None if isinstance(d, Sink) else b.dst(d, "b64")
    if token is not None and space == "shared::cluster":
        raise EmulatorError("an arrive on .shared::cluster gives no state: its result must be _")
    address, _ = b.address(operands[0])
    count = b.src(operands[1], "u32") if len(operands) > 1 else None
    what, remote = inst.name, space != "shared::cta"

    def fn(w, m):
        a, lanes = address(w), active(m)
        alone = lanes[0] if len(lanes) == 1 and w.live.bit_count() > 1 else None
        for lane in lanes:
            barrier = barrier_at(w, int(a[lane]), what, remote)
            n = int(w.v[count][lane]) if count is not None else 1
            if expect:
                barrier.expect_tx(n, w.actor)
                n = 1
            f = barrier.arrive_drop if drop else barrier.arrive
            state = f(n, w.actor, w.name, not quiet, alone)
            if token is not None:
                w.v[token][lane] = state
        w.machine.progress += 1

    return fn


def _is_address(x) -> bool:
    return type(x).__name__ == "Address"


@op("mbarrier.expect_tx", "mbarrier.complete_tx")
def transaction(b, inst, mods):
    _common(b, inst, mods)
    address, _ = b.address(inst.operands[0])
    count, what, expect = b.src(inst.operands[1], "u32"), inst.name, inst.mods[0] == "expect_tx"

    def fn(w, m):
        a, n = address(w), w.v[count]
        for lane in active(m):
            barrier = barrier_at(w, int(a[lane]), what)
            if expect:
                barrier.expect_tx(int(n[lane]), w.actor)
            else:
                barrier.complete_tx(int(n[lane]), w.actor.release())
        w.machine.progress += 1

    return fn


@op("mbarrier.pending_count")
def pending_count(b, inst, mods):
    mods.flag("b64")
    out, token = b.dst(inst.operands[0], "u32"), b.src(inst.operands[1], "u64")
    return lambda w, m: put(w.v[out], [MBarrier.pending_count(int(t)) for t in w.v[token]], m)


def _same(row) -> bool:
    return bool((row == row[0]).all())


class BarrierWait:
    """Lanes held by a try_wait that failed, until a barrier changes phase or the time limit passes."""

    def __init__(self, w, barriers, wanted):
        self.w, self.barriers, self.wanted = w, barriers, wanted
        self.phases = [x.phase for x in barriers]
        self.expired = False

    def ready(self) -> bool:
        if self.expired:
            return True
        if len(self.barriers) == 1:
            return self.barriers[0].phase != self.phases[0] or not self.barriers[0].valid
        return any(x.phase != p or not x.valid for x, p in zip(self.barriers, self.phases, strict=True))

    def describe(self) -> str:
        barrier = self.barriers[0]
        return f"{barrier.name}, {self.wanted}: {barrier.describe()}\n      arrived in {barrier.history()}"


@op("mbarrier.try_wait", "mbarrier.test_wait")
def wait(b, inst, mods):
    space = _common(b, inst, mods)
    if space == "shared::cluster":
        raise EmulatorError("waits are possible on barriers of the own CTA only")
    by_parity, blocks = mods.flag("parity"), inst.mods[0] == "try_wait"
    d, target, state = inst.operands[:3]
    if isinstance(d, Pair):
        raise EmulatorError("a wait has one result")
    out = b.dst(d, "pred")
    address, _ = b.address(target)
    state, what = b.src(state, "u32" if by_parity else "u64"), inst.name
    index = b.index

    def fn(w, m):
        a, s = address(w), w.v[state]
        results = np.zeros(32, bool)
        waiting = {}
        lanes = [0] if m is True and _same(a) and _same(s) else active(m)
        seen = {}
        for lane in lanes:
            key = (int(a[lane]), int(s[lane]))
            if key not in seen:
                barrier = barrier_at(w, key[0], what, remote=False)
                test = barrier.test if by_parity else barrier.test_token
                seen[key] = test(key[1], w.actor, (w.name, index))
                if not seen[key]:
                    waiting[id(barrier)] = (barrier, key[1])
            results[lane] = seen[key]
        if m is True and len(lanes) == 1:
            results[:] = results[0]
        if blocks and len(waiting) and not results.any():
            expired = w.expired.pop(index, None)
            if expired is None:
                wanted = f"parity {s[lanes[0]]}" if by_parity else f"state {int(s[lanes[0]]):#x}"
                return (RETRY, BarrierWait(w, [x for x, _ in waiting.values()], wanted))
        if out is not None:
            put(w.v[out], results, m)
        return None

    return fn
