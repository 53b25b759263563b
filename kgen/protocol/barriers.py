"""mbarriers and barriers of threads, and the conditions under which their phases are alike in every interleaving."""

from __future__ import annotations

from collections import Counter

from kgen.protocol.events import ALIASING, ARRIVALS, BYTES, NAMED, Event
from kgen.protocol.program import BarrierArray
from kgen.protocol.words import barrier_name, cta_of, phase_name, plural

MAX_TX = (1 << 20) - 1  # PTX ISA, mbarrier: range of the transaction count


class Mbarrier:
    """One mbarrier: `phase` phases are complete, `pending` arrivals and `tx` bytes are outstanding in the next."""

    def __init__(self, key: tuple, array: BarrierArray, init: int):
        self.key, self.array, self.count = key, array, array.count
        self.phase, self.pending, self.tx = 0, array.count, 0
        self.complete = [init]  # event by which phase i-1 is complete
        self.events: list[int] = []
        self.arrived: list[int] = []
        self.announced: list[int] = []
        self.sources: Counter = Counter()
        self.expected = self.delivered = 0
        self.waits: dict[int, list] = {}
        self.waiters: list = []

    @property
    def name(self) -> str:
        return f"{barrier_name(self.key)} of {cta_of(self.key[0])}"

    def contribute(self, run, event: int, state, arrivals=0, expect=0, deliver=0, by="") -> None:
        """Counts one event, which must belong to the current phase in every interleaving."""
        before = run.history.before
        self.sources[(state.agent.role.name, by)] += arrivals
        self.expected += expect
        self.delivered += deliver
        if not before(self.complete[self.phase], event):
            if deliver:
                run.fail(BYTES, f"{deliver:,} bytes that {state.where} asked for may arrive at {self.name} before or "
                         f"after {phase_name(self.phase - 1)} completes: {self.bytes_text()}",
                         "announce exactly the bytes of one phase, after the stage was released", event,
                         key=self.key)  # fmt: skip
            if expect and not arrivals:
                run.fail(BYTES, f"{self.name} may complete before {state.where} announces its bytes",
                         "announce them with the arrival (arrive.expect_tx)", event, key=self.key)  # fmt: skip
            run.fail(ARRIVALS, f"{state.where} may arrive at {self.name} before {phase_name(self.phase - 1)} is "
                     "complete, and count for it", "fewer arrivals, or a larger count", event,
                     key=self.key)  # fmt: skip
        if arrivals > self.pending:
            run.fail(ARRIVALS, f"{self.name} gets more arrivals than it is initialised for",
                     "the count is the sum of all who arrive", event, key=self.key)  # fmt: skip
        self.pending -= arrivals
        self.tx += expect - deliver
        if abs(self.tx) > MAX_TX:
            run.fail(BYTES, f"{self.name} would count {self.tx:,} bytes; it holds {MAX_TX:,}",
                     "smaller stages", event, key=self.key)  # fmt: skip
        self.events.append(event)
        if arrivals:
            self.arrived.append(event)
        if expect:
            self.announced.append(event)
        if self.pending == 0 and self.tx == 0:
            self._complete(run)

    def _complete(self, run) -> None:
        before = run.history.before
        done = run.history.add(self.events, None, ("complete", self.key, self.phase))
        for event in self.announced:
            if not any(before(event, a) for a in self.arrived):
                run.fail(BYTES, f"{self.name} may complete before its bytes are announced",
                         "announce them with the arrival (arrive.expect_tx)", *self.arrived, key=self.key)  # fmt: skip
        for wait, state in self.waits.pop(self.phase - 1, ()):
            if not before(wait, done):
                run.fail(ALIASING, f"{self.name} may complete phase {self.phase} while {state.where} still waits for "
                         f"{phase_name(self.phase - 1)}: it then sees the same parity as before and misses it",
                         "who completes the phase must know that the waiter has passed", done,
                         key=self.key)  # fmt: skip
        self.complete.append(done)
        self.phase += 1
        self.pending = self.count
        self.events, self.arrived, self.announced = [], [], []
        self.sources.clear()
        self.expected = self.delivered = 0
        run._wake(self.waiters)

    def alias(self, run, state, step, last: int) -> None:
        """A wait that meets another phase than it means."""
        run.fail(ALIASING, f"{state.where} means {phase_name(step.phase)} of {self.name}, but {phase_name(last)} is "
                 f"the last that is complete, {plural(abs(step.phase - last), 'phase')} "
                 f"{'behind' if last < step.phase else 'past'} it",
                 "phases must not run more than one apart from who waits for them", *state.preds, key=self.key,
                 extra=(state_event(state, step),))  # fmt: skip

    def passes_once(self, run, state, step, previous: int) -> None:
        """The phase before the one waited for must be complete when the wait begins: parity cannot tell it from the
        phase before that."""
        if not run.history.before(self.complete[max(0, self.phase - 1)], previous):
            run.fail(ALIASING, f"{state.where} may wait for phase {step.phase} of {self.name} while phase "
                     f"{step.phase - 1} is incomplete: the parity of phase {step.phase - 2} lets it pass at once",
                     "wait for every phase in turn", previous, key=self.key,
                     extra=(state_event(state, step),))  # fmt: skip

    @property
    def starved(self) -> bool:
        """Whether some have arrived and some not."""
        return 0 < self.pending < self.count

    def bytes_text(self) -> str:
        return f"{self.expected:,} bytes expected, {self.delivered:,} delivered"

    def arithmetic(self) -> str:
        """`full[0] of CTA 0, phase 2: expects 3 arrivals; 1 by producer came; 49,152 bytes expected, ...`."""
        came = [f"{n} by {who}{' (commit)' if by else ''}" for (who, by), n in sorted(self.sources.items()) if n]
        text = f"{self.name}, phase {self.phase}: expects {plural(self.count, 'arrival')}"
        text += f" ({self.array.who})" if self.array.who else ""
        text += f"; came: {', '.join(came) or 'none'}"
        return text + (f"; {self.bytes_text()}" if self.expected or self.delivered else "")


def state_event(state, step) -> Event:
    """That an agent is about to take a step, as the last line of a trace."""
    return Event(state, ("blocked", step))


class Meeting:
    """A barrier of threads: __syncthreads, a named barrier, the cluster's."""

    def __init__(self, key: tuple):
        self.key = key
        self.last: int | None = None
        self.total = self.arrived = 0
        self.events: list[int] = []
        self.waiting: list = []

    def join(self, run, state, event: int, total: int, number: int) -> None:
        if self.events and total != self.total:
            run.fail(NAMED, f"{state.where} meets others at {self.key[1]} for {total} threads; they said {self.total}",
                     "one count for one barrier", event)  # fmt: skip
        if self.last is not None and not run.history.before(self.last, event):
            run.fail(NAMED, f"{state.where} may arrive at {self.key[1]} while others still meet there",
                     "another id", event)  # fmt: skip
        self.total = total
        self.arrived += number
        self.events.append(event)
        if self.arrived > self.total:
            run.fail(NAMED, f"{self.arrived} threads arrive at {self.key[1]}, which is for {self.total}",
                     "let the count be 32 x the warps that take part", event)  # fmt: skip

    def next(self, done: int) -> None:
        self.last = done
        self.total = self.arrived = 0
        self.events, self.waiting = [], []

    def shortfall(self, state) -> str:
        return f"{state.where} waits at {self.key[1]} for {self.total} threads; {self.arrived} arrive"
