"""Who knows what: the happens-before facts that the race checks ask for, kept as vectors.

Facts are counters that only grow: how often a thread has executed fence.proxy.async, which phase of a
barrier is over, how many tcgen05 loads of a warp were waited for. An actor (a warp) holds the latest value
it can rely on of each. A synchronisation edge (an mbarrier arrive seen by a wait, bar.sync, a cluster barrier,
release and acquire on an address) carries the whole vector from one actor to the other.

Vectors are per warp, not per thread: what one lane of a warp learns, all its lanes are taken to know. That
can hide a mistake within a warp, but never makes one up. Only the proxy fence is kept per lane, because
"one lane fenced for all" is a mistake that kernels make. And an actor knows what its lanes have done or learned
since they last synchronised (bar.warp.sync, shfl.sync ...): one lane cannot hand that on for the others.
PTX ISA, "Memory Consistency Model" (8).
"""

from __future__ import annotations

import numpy as np

WARP = 32
_LOADS, _STORES, _LOADS_FENCED, _STORES_FENCED, _CLOCK, _PER_WARP = range(WARP, WARP + 6)


class Facts:
    """A vector of counters, zero where nothing is known. Grows as facts are added to the Order."""

    __slots__ = ("values",)

    def __init__(self, values: np.ndarray | None = None):
        self.values = np.zeros(0, np.int32) if values is None else values

    def copy(self) -> Facts:
        return Facts(self.values.copy())

    def get(self, fact: int) -> int:
        return int(self.values[fact]) if fact < self.values.size else 0

    def at(self, facts: np.ndarray) -> np.ndarray:
        """int32 values of an array of facts."""
        if self.values.size == 0:
            return np.zeros(np.shape(facts), np.int32)
        known = self.values[np.minimum(facts, self.values.size - 1)]
        return np.where(facts < self.values.size, known, 0)

    def learn(self, fact: int, value: int) -> None:
        """Knows that the counter has reached `value`."""
        self._grow(fact + 1)
        if self.values[fact] < value:
            self.values[fact] = value

    def merge(self, other: Facts) -> None:
        """Knows all that `other` knows."""
        n = other.values.size
        self._grow(n)
        np.maximum(self.values[:n], other.values, out=self.values[:n])

    def meet(self, other: Facts) -> Facts:
        """What both know; a new vector."""
        n = min(self.values.size, other.values.size)
        return Facts(np.minimum(self.values[:n], other.values[:n]))

    def _grow(self, size: int) -> None:
        if self.values.size < size:
            self.values = np.concatenate([self.values, np.zeros(size - self.values.size, np.int32)])


class Order:
    """Numbers the facts of one cluster, and knows what each of them is about."""

    def __init__(self):
        self._size = 1  # fact 0 means "none"

    def facts(self, count: int) -> int:
        """Reserves `count` facts; the number of the first."""
        first, self._size = self._size, self._size + count
        return first

    def actor(self, name: str) -> Actor:
        """A new warp."""
        return Actor(name, self.facts(_PER_WARP))


class Actor:
    """One warp, as the checks see it.

    known   facts that it may rely on
    after   what it knew at its last tcgen05.fence::after_thread_sync
    apart   its lanes have fenced or waited since they last synchronised
    shown   its own counters as they stood then: what each lane knows of the others
    alone   facts that one lane has learned since then: that lane, and what all of them know
    gone    lanes that have arrived alone since then, bits: when all have, what all have done is handed on
    held    counters as they stood when a lane arrived somewhere before the others had synchronised with it
    """

    def __init__(self, name: str, first: int):
        self.name = name
        self.first = first
        self.known = Facts()
        self.after = Facts()
        self.epoch = 0  # proxy fences executed by any lane
        self.loads = self.stores = 0  # tcgen05 loads and stores issued
        self.clock = 0  # edges out of this warp so far
        self.rank = 0  # of its CTA
        self.unfenced: list = []  # mbarriers that it has initialised since its last fence for them
        self.apart = False
        self.shown = np.zeros(_CLOCK, np.int32)
        self.alone: dict[int, tuple[int, int]] = {}
        self.gone = 0
        self.held: dict[int, int] = {}

    def __repr__(self) -> str:
        return self.name

    @property
    def clock_fact(self) -> int:
        """Whoever knows clock_fact > `clock` as it was at a moment comes after what the warp did then."""
        return self.first + _CLOCK

    @property
    def load_fact(self) -> int:
        """The fact that counts tcgen05 loads that were waited for."""
        return self.first + _LOADS

    @property
    def store_fact(self) -> int:
        return self.first + _STORES

    @property
    def load_fenced_fact(self) -> int:
        """Counts those that a tcgen05.fence::before_thread_sync came after."""
        return self.first + _LOADS_FENCED

    @property
    def store_fenced_fact(self) -> int:
        return self.first + _STORES_FENCED

    def fence_before(self) -> None:
        """`tcgen05.fence::before_thread_sync`: what was waited for may be handed on."""
        self.apart = True
        self.known.learn(self.load_fenced_fact, self.known.get(self.load_fact))
        self.known.learn(self.store_fenced_fact, self.known.get(self.store_fact))

    def fence_after(self) -> None:
        """`tcgen05.fence::after_thread_sync`: later tcgen05 instructions come after what is known now."""
        self.after = self.known.copy()

    def fence_init(self) -> None:
        """`fence.mbarrier_init`: asynchronous units may use the barriers initialised before it."""
        for barrier in self.unfenced:
            barrier.unfenced = False
        self.unfenced.clear()

    def fence_fact(self, lane):
        """The fact that counts the proxy fences of a lane (an int or an array)."""
        return self.first + lane

    def fence_async(self, lanes: np.ndarray | None = None) -> None:
        """`fence.proxy.async` by the lanes (bool[32], all if left out). PTX ISA, "membar/fence"."""
        self.epoch += 1
        self.apart = True
        self.fence_init()
        for lane in range(WARP) if lanes is None else np.flatnonzero(lanes).tolist():
            self.known.learn(self.first + lane, self.epoch)

    def converge(self) -> None:
        """The lanes synchronise."""
        if self.apart:
            own = self.known.values[self.first : self.first + _CLOCK]
            self.shown[: own.size] = own
            self.apart, self.gone = False, 0
        self.alone.clear()

    def tick(self, lane: int | None = None) -> Facts:
        """What an edge out of this actor carries, its own vector: for merging into another one at once.

        lane: it goes out of this lane alone.
        """
        self.clock += 1
        self.known.learn(self.first + _CLOCK, self.clock)
        return self.known if lane is None or not self.apart else self._of(lane)

    def _of(self, lane: int) -> Facts:
        """What is known without what other lanes have done since they synchronised with this one."""
        self.gone |= 1 << lane
        if self.gone == (1 << WARP) - 1:
            return self.known
        facts = self.known.copy()
        own = facts.values[self.first : self.first + _CLOCK]
        done = own.copy()
        own[:] = self.shown
        own[lane] = done[lane]
        for i in np.flatnonzero(done > own).tolist():
            self.held[self.first + i] = int(done[i])
        return facts

    def release(self) -> Facts:
        """What an edge out of this actor carries; a copy."""
        return self.tick().copy()

    def follows(self, fact: int, value: int) -> bool:
        """Does what it does now come after the event (fact, value)? Its own events always do."""
        return self.known.get(fact) > value or fact == self.first + _CLOCK

    def acquire(self, facts: Facts) -> None:
        self.known.merge(facts)
        if self.apart:  # what its lanes have handed on comes back to all of them
            own = facts.values[self.first : self.first + _CLOCK]
            np.maximum(self.shown[: own.size], own, out=self.shown[: own.size])
        for fact in [f for f, (_, before) in self.alone.items() if facts.get(f) > before]:
            del self.alone[fact]


class Meeting:
    """A barrier of warps (bar.sync, barrier.cluster): whoever leaves knows what all that arrived knew.

    Arrivals of the next generation may come before the last warp has left, so the facts of a generation
    are fixed by `complete`.
    """

    def __init__(self):
        self._arriving = Facts()
        self._complete = Facts()

    def arrive(self, actor: Actor) -> None:
        self._arriving.merge(actor.tick())

    def complete(self) -> None:
        """All have arrived."""
        self._complete, self._arriving = self._arriving, Facts()

    def leave(self, actor: Actor) -> None:
        actor.acquire(self._complete)


class Handover:
    """Release and acquire on addresses: flags and atomics in memory, keyed by whatever names the place."""

    def __init__(self):
        self._facts: dict[object, Facts] = {}

    def release(self, key: object, actor: Actor) -> None:
        """st.release, atom, red: facts stay with the place."""
        self._facts.setdefault(key, Facts()).merge(actor.tick())

    def acquire(self, key: object, actor: Actor) -> None:
        """ld.acquire, atom: the actor learns them."""
        if key in self._facts:
            actor.acquire(self._facts[key])
