"""Asynchronous work in general: the agenda of what is pending, and what the units of a cluster share.

Issuing an asynchronous instruction adds actions to the agenda. An action runs when the scheduler calls
`step` (it should, when no warp can move, and now and then before), or when an instruction waits for it.
So everything happens as late as the program allows, and in any order that the actions' `after` leaves open.
The same seed gives the same run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from kgen.emulator.clusters import getctarank, offset_of
from kgen.emulator.hazards import SharedHazards
from kgen.emulator.mbarrier import BarrierTable, MBarrier, Shared
from kgen.emulator.monitor import Monitor
from kgen.emulator.order import Actor, Facts, Order


class GlobalSpace(Protocol):
    """Global memory. Addresses are int64 byte addresses; both check bounds and raise EmulatorError."""

    def gather(self, addresses: np.ndarray, nbytes: int, what: str) -> np.ndarray:
        """uint8 [n, nbytes]: the bytes at each address."""

    def scatter(self, addresses: np.ndarray, data: np.ndarray, what: str) -> None:
        """Stores uint8 [n, nbytes]."""


class Action:
    """Something that will happen. `kind` and `unit` are for the trace; times are logical steps."""

    __slots__ = ("after", "done", "issued", "kind", "label", "number", "origin", "run", "unit")

    def __init__(self, number, kind, unit, label, run, after, issued, origin):
        self.number, self.kind, self.unit, self.label = number, kind, unit, label
        self.run, self.after, self.issued, self.origin = run, after, issued, origin
        self.done = False

    @property
    def ready(self) -> bool:
        return all(a.done for a in self.after)


class Agenda:
    """Pending actions."""

    def __init__(self, monitor: Monitor, seed: int = 0):
        self.monitor = monitor
        self.random = random.Random(seed)
        self.actions: list[Action] = []
        self._number = 0

    def add(
        self, kind: str, unit: str, label: str, run: Callable[[], None], after: Iterable[Action] = ()
    ) -> Action:
        """A new action that may run once all of `after` have."""
        waits = tuple(a for a in after if not a.done)
        now = self.monitor.now
        action = Action(self._number, kind, unit, label, run, waits, now, self.monitor.place())
        self._number += 1
        self.actions.append(action)
        return action

    @property
    def idle(self) -> bool:
        return not self.actions

    def pending(self) -> bool:
        return bool(self.actions)

    def step(self, chooser: random.Random | None = None) -> bool:
        """Runs one action that is ready, at random; False if nothing is pending."""
        if not self.actions:
            return False
        ready = [a for a in self.actions if not a.after or a.ready]
        self._run((chooser or self.random).choice(ready))
        return True

    def drain(self) -> None:
        """Runs all there is."""
        while self.step():
            pass

    def force(self, actions: Iterable[Action]) -> None:
        """Runs these, after what they come after: an instruction waits for them."""
        for action in sorted(actions, key=lambda a: a.number):
            if not action.done:
                self.force(action.after)
                self._run(action)

    def _run(self, action: Action) -> None:
        self.monitor.tick()
        self.actions.remove(action)
        action.done = True
        outer, self.monitor.origin = self.monitor.origin, action.origin
        try:
            action.run()
            self.monitor.event(action.kind, action.unit, action.label, action.issued)
        finally:
            self.monitor.origin = outer
        action.after = ()  # do not keep a chain of finished work alive

    def report(self) -> list[str]:
        """One line per pending action, for a deadlock report."""
        return [f"  pending: {a.label} (issued at step {a.issued})" for a in self.actions]


class CtaUnits:
    """What the asynchronous units need of one CTA."""

    def __init__(self, shared: Shared, agenda: Agenda, order: Order):
        self.shared, self.rank, self.agenda = shared, shared.rank, agenda
        monitor = agenda.monitor
        self.barriers = BarrierTable(shared, monitor, order)
        self.hazards = SharedHazards(shared, monitor, self.barriers)
        self.monitor = monitor
        self.foreign: dict[int, tuple[int, MBarrier | None, int, str]] = {}
        self.ended: Facts | None = None  # what its warps knew when they exited
        self.closing: list[Action] = []  # signals of its own that it may leave pending: they come before its end
        self.chunks = shared.bytes[: shared.bytes.size // 16 * 16].view(np.uint64).reshape(-1, 2)

    def __repr__(self) -> str:
        return f"CTA {self.rank}"

    def touched(self, fact: int, value: int, what: str, barrier: MBarrier | None = None) -> None:
        """Another CTA's instruction uses memory of this one, which therefore must not exit before.

        The use is over for whoever knows fact > value, or saw the end of the current phase of `barrier`.
        """
        self.foreign[fact] = value, barrier, barrier.phase if barrier is not None else 0, what

    def warp_ended(self, actor: Actor) -> None:
        """One of its warps exits."""
        self.ended = self.ended or Facts()
        self.ended.merge(actor.known)

    def exit(self) -> None:
        """The CTA ends: what still touches its shared memory is an error, and so is what might.

        Fails: exit-while-in-flight; exit-unobserved where only the schedule had it end in time.
        """
        for fact, (value, barrier, phase, what) in self.foreign.items() if self.ended is not None else ():
            seen = barrier is not None and self.ended.get(barrier.fact) > phase
            if self.ended.get(fact) <= value and not seen:
                text = f"CTA {self.rank} exits, though nothing that it waited for comes after {what}; a cluster "
                self.monitor.fail("exit-unobserved", text + "barrier must")
        self.agenda.force(self.closing)
        self.closing.clear()
        for flight in self.hazards.in_flight:
            doing = "will write" if flight.writes else "still reads"
            text = f"CTA {self.rank} exits while {flight.label} {doing} its shared memory"
            self.monitor.fail("exit-while-in-flight", text, other=flight.label)
        self.barriers.exit()


class ClusterUnits:
    """The CTAs of one cluster by rank, with their common order, agenda and global memory."""

    def __init__(self, shared: Iterable[Shared], memory: GlobalSpace, agenda: Agenda, order: Order | None = None):
        self.monitor, self.agenda, self.memory = agenda.monitor, agenda, memory
        self.order = order or Order()
        self.ctas = [CtaUnits(s, agenda, self.order) for s in shared]

    def cta_of(self, address: int, what: str) -> CtaUnits:
        """The CTA that owns a shared::cluster address. Fails: cluster-rank."""
        return self.cta(getctarank(address), what)

    def cta(self, rank: int, what: str) -> CtaUnits:
        if rank >= len(self.ctas):
            self.monitor.stop("cluster-rank", f"{what} names CTA {rank}; the cluster has {len(self.ctas)}")
        return self.ctas[rank]

    def barrier(self, address: int, what: str, actor: Actor | None = None) -> MBarrier:
        """The barrier at a shared::cluster address."""
        return self.cta_of(address, what).barriers.at(offset_of(address), what, actor)

    def multicast(self, mask: int, what: str) -> list[CtaUnits]:
        """The CTAs of a multicast mask; bit b is %cluster_ctarank b. Fails: multicast-cta."""
        if not mask or mask >> len(self.ctas):
            text = f"{what}: mask {mask:#x} in a cluster of {len(self.ctas)} CTAs"
            self.monitor.stop("multicast-cta", text, mask=mask)
        return [c for c in self.ctas if mask >> c.rank & 1]
