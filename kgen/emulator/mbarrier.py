"""mbarrier objects. PTX ISA, "mbarrier" (9.7.13.15): phases, pending arrivals, and the transaction count.

    init(c)       phase 0, pending = expected = c, tx = 0
    arrive(n)     pending -= n       expect_tx(n)   tx += n       complete_tx(n)   tx -= n
    a phase ends when pending and tx are both 0; the next one starts with pending = expected

tx may be negative while arrivals are pending: data can land before its bytes were announced.
Every misuse is a named check, so that a launch can go on with a warning where that makes sense.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Protocol

import numpy as np

from kgen.emulator.monitor import Monitor
from kgen.emulator.order import Actor, Facts, Order

MAX_COUNT = (1 << 20) - 1  # arrivals, and bytes of a transaction in either direction
SIZE = 8  # bytes, and alignment


class Shared(Protocol):
    """Shared memory of one CTA, indexed by shared::cta address."""

    bytes: np.ndarray  # uint8
    init: np.ndarray  # bool: bytes that were ever written
    rank: int  # of the CTA in its cluster


class MBarrier:
    """One barrier. Counts are arrivals and bytes; `name` is how messages call it."""

    def __init__(self, name: str, count: int, monitor: Monitor, order: Order):
        self.name, self.monitor = name, monitor
        self.phase, self.pending, self.expected, self.tx = 0, count, count, 0
        self.valid = True
        self.unfenced = False  # initialised by a thread that has not fenced since
        self.fact = order.facts(1)  # counts completed phases
        self.watchers: list[Callable[[MBarrier], None]] = []
        self.arrived: Counter[str] = Counter()  # who arrived in this phase, for messages
        self.arrived_before: Counter[str] = Counter()
        self._gathering, self._published = Facts(), Facts()
        self._waiting: dict[Hashable, int] = {}  # waiter: the phase its last failed test was for
        self._observed = True
        self._seen: dict[Actor, tuple[int, int]] = {}  # who saw which phase end, and its clock then
        self._started = monitor.now
        self.born: tuple[Actor, int] | None = None  # who initialised it, and its clock then
        self._acquainted: set[Actor] = set()  # those that came after that

    # --- arrivals and bytes ---------------------------------------------------------------------------

    def arrive(
        self, count: int = 1, actor: Actor | None = None, who: str = "", complete: bool = True, lane: int | None = None
    ) -> int:
        """`mbarrier.arrive`; the token of the phase before it. complete=False is `.noComplete`.

        lane: the only one of its warp that arrives.

        Fails: mbarrier-arrival-overflow, mbarrier-nocomplete, mbarrier-count, mbarrier-uninitialised.
        """
        token = self._token()
        self._live("arrive")
        if not 1 <= count <= MAX_COUNT:
            self._fail("mbarrier-count", f"an arrival counts {count}, must be 1 to {MAX_COUNT}")
        if not self._observed and self.phase:
            text = f"an arrival in phase {self.phase}, but no thread has seen the end of phase {self.phase - 1}"
            self._fail("mbarrier-phase-unobserved", text)
        if count > self.pending:
            text = f"{count} arrival(s), but only {self.pending} of {self.expected} are pending in this phase"
            self._fail("mbarrier-arrival-overflow", text + self._who())
            return token
        if not complete and count == self.pending:
            self._fail("mbarrier-nocomplete", "an arrive.noComplete takes the last pending arrival")
        self.pending -= count
        self.arrived[who or (actor.name if actor else "?")] += count
        if actor is not None:
            self._gathering.merge(actor.tick(lane))
        else:
            self._fenced("an asynchronous arrival")
        self._maybe_complete()
        return token

    def expect_tx(self, nbytes: int, actor: Actor | None = None) -> None:
        """`mbarrier.expect_tx`: this phase also waits for `nbytes` bytes. Fails: mbarrier-tx-overflow."""
        self._live("expect_tx")
        self._add_tx(nbytes)
        if actor is not None:
            self._gathering.merge(actor.tick())
        # Expecting what has landed already makes tx zero, but only an arrival or a completion ends a phase.

    def arrive_expect_tx(self, nbytes: int, actor: Actor | None = None, who: str = "") -> int:
        """`mbarrier.arrive.expect_tx`, one operation: the bytes count for the phase that it arrives in."""
        self.expect_tx(nbytes)
        return self.arrive(1, actor, who)

    def complete_tx(self, nbytes: int, facts: Facts | None = None) -> int:
        """Bytes that landed; the phase that they count for. `facts`: what their writer had to know."""
        self._live("complete_tx")
        self._fenced("complete_tx")
        phase = self.phase
        self._add_tx(-nbytes)
        if facts is not None:
            self._gathering.merge(facts)
        self._maybe_complete()
        return phase

    def arrive_drop(
        self, count: int = 1, actor: Actor | None = None, who: str = "", complete: bool = True, lane: int | None = None
    ) -> int:
        """`mbarrier.arrive_drop`: arrives, and is not expected in later phases."""
        self._live("arrive_drop")
        if count > self.expected:
            self._fail("mbarrier-arrival-overflow", f"{count} dropped of {self.expected} expected arrivals")
            return self._token()
        self.expected -= count
        return self.arrive(count, actor, who, complete, lane)

    def learn(self, facts: Facts) -> None:
        """What an asynchronous arrival carries; those who see this phase end will know it."""
        self._gathering.merge(facts)

    def add_pending(self, count: int = 1) -> None:
        """What cp.async.mbarrier.arrive without .noinc does first, so that its arrival is net zero."""
        self._live("cp.async.mbarrier.arrive")
        if self.pending + count > MAX_COUNT:
            self._fail("mbarrier-count", f"{self.pending + count} pending arrivals, the most is {MAX_COUNT}")
        self.pending += count

    # --- waits ------------------------------------------------------------------------------------------

    def test(self, parity: int, actor: Actor | None = None, waiter: Hashable = None) -> bool:
        """`mbarrier.test_wait.parity` / `try_wait.parity`: has the phase with this parity completed?

        waiter: who asks, if not the actor. Fails: mbarrier-parity-alias when the same waiter's phase was
        over and another one went by before it looked again; then parity cannot tell them apart.
        """
        self._live("wait")
        waiter = actor if waiter is None else waiter
        started = self._waiting.get(waiter)
        if started is not None and started & 1 == parity & 1 and self.phase - started >= 2:
            text = f"{waiter} waits for phase {started}, but phase {self.phase - 1} is over already: "
            self._fail("mbarrier-parity-alias", text + "the parity of a phase two behind says the opposite")
        done = self.phase & 1 != parity & 1
        return self._result(done, actor, waiter)

    def completed(self, parity: int) -> bool:
        """What `test` would say now, without asking: for a scheduler that looks whether a warp could go on."""
        return self.phase & 1 != parity & 1

    def test_token(self, token: int, actor: Actor | None = None, waiter: Hashable = None) -> bool:
        """`mbarrier.test_wait` / `try_wait` with the token of an arrive."""
        self._live("wait")
        phase = token >> 20
        if not phase <= self.phase <= phase + 1:
            text = f"a token of phase {phase} is tested in phase {self.phase}; only the current phase and the one "
            self._fail("mbarrier-parity-alias", text + "before it can be tested")
        return self._result(self.phase > phase, actor, actor if waiter is None else waiter)

    @staticmethod
    def pending_count(token: int) -> int:
        """`mbarrier.pending_count`: arrivals that were pending when the token was made."""
        return token & MAX_COUNT

    def _result(self, done: bool, actor: Actor | None, waiter: Hashable) -> bool:
        if not done:
            if waiter is not None:
                self._waiting[waiter] = self.phase
            return False
        self._waiting.pop(waiter, None)
        self._observed = True
        if actor is not None:
            actor.acquire(self._published)
            actor.known.learn(self.fact, self.phase)
            if self.born is not None:
                self._seen[actor] = self.phase - 1, actor.clock
        return True

    # --- life -------------------------------------------------------------------------------------------

    @property
    def in_use(self) -> bool:
        """Arrivals or bytes of the current phase are outstanding, or somebody waits for it."""
        return self.pending != self.expected or self.tx != 0 or self.phase in self._waiting.values()

    def inval(self) -> None:
        """`mbarrier.inval`. Fails: mbarrier-inval-in-use."""
        self._live("inval")
        if self.in_use:
            self._fail("mbarrier-inval-in-use", "invalidated while in use")
        self.valid = False

    def describe(self) -> str:
        """E.g. "phase 3, 2 of 16 arrivals pending, 4096 bytes missing"."""
        text = f"phase {self.phase}, {self.pending} of {self.expected} arrivals pending"
        if self.tx > 0:
            text += f", {self.tx} bytes missing"
        elif self.tx < 0:
            text += f", {-self.tx} bytes more than were expected"
        return text

    def history(self) -> str:
        """Who has arrived, in this phase and the one before: what a deadlock report needs."""
        return "; ".join(
            f"{when}: {', '.join(f'{who} x{n}' if n > 1 else who for who, n in arrived.items()) or 'nobody'}"
            for when, arrived in (("this phase", self.arrived), ("the last one", self.arrived_before))
        )

    def _add_tx(self, nbytes: int) -> None:
        if abs(self.tx + nbytes) > MAX_COUNT:
            what = "expected" if nbytes > 0 else "completed"
            self._fail("mbarrier-tx-overflow", f"{abs(nbytes)} more bytes {what}: {self.tx + nbytes} is out of range")
        self.tx += nbytes

    def _maybe_complete(self) -> None:
        if self.pending or self.tx:
            return
        if self._seen:
            self._check_followed()
        self.monitor.event("barrier", self.name, f"phase {self.phase}", self._started)
        self._started = self.monitor.now
        self.phase += 1
        self.pending = self.expected
        self._observed = False
        self.arrived_before, self.arrived = self.arrived, Counter()
        # Cumulative: who sees this phase also sees what the earlier ones published.
        self._published.merge(self._gathering)
        self._published.learn(self.fact, self.phase)
        self._gathering = Facts()
        for watcher in list(self.watchers):
            watcher(self)

    def _check_followed(self) -> None:
        """Whoever waited for the last phase must have seen its end before this one's: parity has one bit.

        That it has by luck of the schedule is not enough, what ends this phase must come after its wait.
        """
        for actor, (phase, clock) in list(self._seen.items()):
            if phase < self.phase - 1:
                del self._seen[actor]
            elif not any(f.get(actor.clock_fact) > clock for f in (self._gathering, self._published)):
                del self._seen[actor]
                text = f"phase {self.phase} ends, but nothing that it waits for comes after the wait of {actor} for "
                text += f"phase {phase}: had that wait come later, the parity would have told it the opposite"
                self._fail("mbarrier-can-alias", text)

    def check_born(self, actor: Actor, what: str) -> None:
        """Fails mbarrier-init-unobserved: nothing orders the initialisation before what `actor` does now."""
        if self.born is None or actor in self._acquainted:
            return
        self._acquainted.add(actor)
        by, clock = self.born
        if actor is not by and not actor.follows(by.clock_fact, clock):
            text = f"{what} by {actor}, for which nothing orders its initialisation by {by} first: a barrier of the "
            self._fail("mbarrier-init-unobserved", text + ("CTA" if by.rank == actor.rank else "cluster") + " must")

    def _token(self) -> int:
        return self.phase << 20 | self.pending

    def _who(self) -> str:
        names = ", ".join(f"{who} x{n}" for who, n in self.arrived.most_common(4))
        return f" (arrived: {names})" if names else ""

    def _fenced(self, what: str) -> None:
        """PTX ISA, "membar/fence": fence.mbarrier_init; a fence of the proxy does as well."""
        if self.unfenced:
            text = f"{what}, but the thread that initialised it has executed no fence.mbarrier_init since"
            self._fail("mbarrier-init-unfenced", text)

    def _live(self, what: str) -> None:
        if not self.valid:
            self._fail("mbarrier-uninitialised", f"{what} after it was invalidated")

    def _fail(self, check: str, text: str) -> None:
        self.monitor.fail(check, f"{self.name} ({self.describe()}): {text}", barrier=self)


class BarrierTable:
    """The barriers in one CTA's shared memory, by offset."""

    def __init__(self, shared: Shared, monitor: Monitor, order: Order):
        self.shared, self.monitor, self.order = shared, monitor, order
        self.barriers: dict[int, MBarrier] = {}
        self.covered = np.zeros(shared.bytes.size, bool)  # bytes that a live barrier occupies
        self.watchers: list[Callable[[MBarrier], None]] = []  # given to every barrier that is initialised
        self.exited = False

    def init(self, offset: int, count: int, name: str = "", actor: Actor | None = None) -> MBarrier:
        """`mbarrier.init` by `actor`: a new barrier at shared::cta address `offset`.

        Fails: mbarrier-misaligned, mbarrier-count, mbarrier-init-live, mbarrier-overwritten (it overlaps another).
        """
        name = name or f"mbarrier at shared {offset:#x} of CTA {self.shared.rank}"
        self._aligned(offset, "mbarrier.init")
        if not 1 <= count <= MAX_COUNT:
            self.monitor.fail("mbarrier-count", f"{name}: count {count}, must be 1 to {MAX_COUNT}")
        old = self.barriers.get(offset)
        if old is not None:
            text = f"{name} ({old.describe()}) is initialised again; mbarrier.inval must come first"
            self.monitor.fail("mbarrier-init-live", text, barrier=old)
        barrier = MBarrier(name, count, self.monitor, self.order)
        barrier.watchers = self.watchers
        barrier.born = None if actor is None else (actor, actor.clock)
        if actor is not None:
            barrier.unfenced = True
            actor.unfenced.append(barrier)
        self.barriers[offset] = barrier
        self.covered[offset : offset + SIZE] = True
        self.shared.init[offset : offset + SIZE] = True
        return barrier

    def at(self, offset: int, what: str, actor: Actor | None = None) -> MBarrier:
        """The barrier that `what` (an instruction of `actor`) addresses, in this CTA or from another one.

        Fails: mbarrier-init-unobserved; mbarrier-exited-cta, mbarrier-misaligned, mbarrier-uninitialised.
        All but the first are always errors: there is nothing to go on with.
        """
        barrier = self.barriers.get(offset)
        if barrier is not None and not self.exited:
            if actor is not None:
                barrier.check_born(actor, what)
            return barrier
        place = f"shared {offset:#x} of CTA {self.shared.rank}"
        if self.exited:
            self.monitor.stop("mbarrier-exited-cta", f"{what} on {place}, but that CTA has exited")
        self._aligned(offset, what)
        near = [o for o in self.barriers if abs(o - offset) <= 64]
        hint = f"; barriers near it: {', '.join(f'{o:#x}' for o in sorted(near))}" if near else ""
        self.monitor.stop("mbarrier-uninitialised", f"{what} on {place}, where no mbarrier was initialised{hint}")

    def inval(self, offset: int) -> None:
        """`mbarrier.inval`; the bytes are ordinary memory afterwards, of unknown value."""
        self.at(offset, "mbarrier.inval").inval()
        del self.barriers[offset]
        self.covered[offset : offset + SIZE] = False
        self.shared.init[offset : offset + SIZE] = False

    def check_write(self, addresses: np.ndarray | slice, what: str) -> None:
        """Fails mbarrier-overwritten if any of the byte addresses lies in a live barrier."""
        if not self.barriers or not self.covered[addresses].any():
            return
        index = np.arange(self.covered.size)[addresses] if isinstance(addresses, slice) else addresses.reshape(-1)
        offset = int(index[self.covered[index]][0]) & -SIZE
        barrier = self.barriers[offset]
        text = f"{what} overwrites {barrier.name} ({barrier.describe()})"
        self.monitor.fail("mbarrier-overwritten", text, barrier=barrier)

    def exit(self) -> None:
        """The CTA has exited: whoever signals one of its barriers from now on is an error."""
        self.exited = True

    def _aligned(self, offset: int, what: str) -> None:
        if offset % SIZE or not 0 <= offset <= self.covered.size - SIZE:
            text = f"{what} on shared {offset:#x}: an mbarrier is {SIZE} bytes, aligned, inside shared memory"
            self.monitor.stop("mbarrier-misaligned", text)

