"""All interleavings of a protocol at given trip counts, by one execution and the order that it forces.

Roles do not branch on what they read, so an execution is a partial order of events: program order, arrivals before the
completion of their phase, a completion before what waits for it, an asynchronous operation's start before its end.
Another interleaving could only be another partial order if somewhere

1. a wait passed on another phase: the phase before the one before it (parity alone cannot tell), or not at all because
   the phase after it is complete already; or
2. an arrival, announced bytes or delivered bytes counted for another phase; or a phase completed before all its bytes
   were announced.

Each is excluded by a pair of events that must be ordered, and `_Execution` checks each pair. If all hold, then by
induction on the first step that deviates there is none: every interleaving of every agent, CTA and asynchronous
completion is a linear extension of the same partial order. So a deadlock of one is a deadlock of all, and two uses of a
buffer cannot meet exactly if the end of one is ordered before the start of the other. This is partial-order reduction
carried to its end: one state per event is visited, and the number of events is what certificates count. `search.py`
enumerates interleavings one by one, without this argument; tests compare the two.

Where a pair (x, y) is not ordered, the causal past of y is an execution in which y happens and x has not: that is the
counter-example, and no shorter one leads to y.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kgen.protocol import endings, memory
from kgen.protocol.agents_state import AgentState
from kgen.protocol.barriers import Mbarrier, Meeting
from kgen.protocol.events import (
    ARRIVALS,
    CTA_WIDE,
    EARLY,
    NAMED,
    NO_CTA,
    RANGE,
    TRIPS,
    History,
    Stop,
    Violation,
)
from kgen.protocol.program import (
    Arrive,
    AsyncCopy,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    CommitStores,
    CtaBarrier,
    ExpectTx,
    Fence,
    Init,
    NamedBarrier,
    Program,
    Read,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    WaitGroup,
    WaitStores,
    Write,
    walk,
)
from kgen.protocol.tensor_memory import TensorMemory
from kgen.protocol.unroll import agents
from kgen.protocol.words import barrier_name, cta_of


def execute(program: Program, trips: Mapping[str, int], merge: bool = True) -> tuple[int, Violation | None]:
    """Events of the execution at these trip counts, and the first property that fails in some interleaving."""
    for role in program.roles:
        wide = next((op for op in walk(role.work) if isinstance(op, CtaBarrier)), None)
        if wide and len(program.roles) > 1:
            return 0, Violation(
                CTA_WIDE,
                f"{role.name} calls __syncthreads while it works; other roles never reach it",
                "give the role a named barrier of its own threads",
            )
    for array in program.barriers:
        if not 1 <= array.count < 1 << 20:
            what = f"{array.name} is initialised for {array.count} arrivals; 1 to 1,048,575 can be"
            return 0, Violation(ARRIVALS, what, "the count is the sum of all who arrive")
    run = _Execution(program, trips, merge)
    violation = run.run()
    if unequal := endings.unequal_trips(run.agents):
        base = violation or Violation(TRIPS, "")
        what = unequal + (f"; so {base.what}" if base.what else "")
        violation = Violation(TRIPS, what, "derive the count in one place for all roles", base.trace, base.key,
                              base.arithmetic)  # fmt: skip
    return len(run.history.past), violation


class _Execution:
    def __init__(self, program: Program, trips: Mapping[str, int], merge: bool):
        self.program = program
        self.history = History()
        self.agents = [AgentState(a) for a in agents(program, trips, merge)]
        for state in self.agents:
            state.started = self.history.add((), state, None)
            state.preds = [state.started]
        self.barriers: dict[tuple, Mbarrier] = {}
        self.meetings: dict[tuple, Meeting] = {}
        self.memory = memory.Memory(program, self.history)
        self.tensor = TensorMemory(program, self.history, self.memory)
        self.later: deque = deque()  # asynchronous completions, oldest first
        self.remote: list[tuple[int, tuple, object]] = []  # (event, barrier, agent): signals to another CTA
        self.ends: list[tuple[int, int, object]] = []  # (event, CTA concerned, step): ends of asynchronous work
        self.trips = trips
        warps = [sum(s.agent.warps for s in self.agents if s.agent.cta == c) for c in range(program.cluster)]
        self.warps = warps
        self.table = {
            Init: self._init, Wait: self._wait, Arrive: self._arrive, ExpectTx: self._arrive, Commit: self._commit,
            AsyncLoad: self._load, ClcRequest: self._load, AsyncMma: self._mma, AsyncCopy: self._copy,
            WaitGroup: self._wait_group,
            Read: self._read, ClcQuery: self._read, Write: self._write, Fence: self._fence,
            AsyncStore: self._store, CommitStores: self._commit_stores, WaitStores: self._wait_stores,
            NamedBarrier: self._named, CtaBarrier: self._meet_all, ClusterBarrier: self._meet_all,
            TmemAlloc: self._tmem, TmemRelinquish: self._tmem, TmemDealloc: self._tmem,
        }  # fmt: skip

    def run(self) -> Violation | None:
        ready = deque(self.agents)
        self.ready = ready
        table = self.table
        try:
            while ready or self.later:
                if not ready:
                    self.later.popleft()()
                    continue
                state = ready.popleft()
                steps = state.agent.steps
                state.blocked = None
                while state.at < len(steps):
                    step = steps[state.at]
                    if not table[type(step.op)](state, step):
                        break
                    if state.blocked is None:
                        state.at += 1
                    else:  # arrived, and waits for the others: the step itself is over
                        state.at += 1
                        break
            if any(s.at < len(s.agent.steps) or s.blocked for s in self.agents):
                endings.stuck(self)
            endings.exits(self)
        except Stop as stop:
            return stop.violation
        return None

    # -- events

    def _event(self, state: AgentState, step, *more: int) -> int:
        event = self.history.add((*state.preds, *more), state, step)
        state.preds = [event]
        return event

    def fail(self, kind: str, what: str, hint: str = "", *until: int, key=None, extra=()) -> None:
        """Ends the execution; the trace is the causal past of the events `until`."""
        trace = self.history.until(*until) if until else ()
        arithmetic = self.barriers[key].arithmetic() if key in self.barriers else ""
        raise Stop(Violation(kind, what, hint, (*trace, *extra), key, arithmetic))

    def _wake(self, waiters: list[AgentState]) -> None:
        self.ready.extend(waiters)
        waiters.clear()

    # -- mbarriers

    def _init(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        for array in self.program.barriers:
            for stage in range(array.depth):
                key = (state.agent.cta, array.name, stage)
                self.barriers[key] = Mbarrier(key, array, event)
        return True

    def _mbarrier(self, state: AgentState, key: tuple, event: int) -> Mbarrier:
        """The barrier, which must have been initialised before `event` in every interleaving."""
        b = self.barriers.get(key)
        if key[0] >= self.program.cluster:
            self.fail(NO_CTA, f"{state.where} signals {barrier_name(key)} of {cta_of(key[0])}, which is not in the "
                      f"cluster of {self.program.cluster}", "build the mask from the cluster's ranks",
                      event)  # fmt: skip
        if b is None and key[2] >= self.program.barrier(key[1]).depth:
            depth = self.program.barrier(key[1]).depth
            self.fail(RANGE, f"{state.where} uses {barrier_name(key)}; there are {depth}",
                      "let all roles take the depth from one constant", event)  # fmt: skip
        if b is None or not self.history.before(b.complete[0], event):
            self.fail(EARLY, f"{state.where} may reach {barrier_name(key)} of {cta_of(key[0])} before it is "
                      "initialised", "synchronise the CTA (or the cluster) after the barriers are initialised",
                      event, key=key, extra=(state.next_event(),))  # fmt: skip
        return b

    def _wait(self, state: AgentState, step) -> bool:
        key = step.keys[0]
        previous = state.preds[-1] if len(state.preds) == 1 else self._event(state, None)
        b = self._mbarrier(state, key, previous)
        phase = b.phase - 1  # the last complete one
        if phase > step.phase or (phase < step.phase and (step.phase - phase) % 2 == 0 and phase >= -1):
            b.alias(self, state, step, phase)
        if b.phase & 1 == step.number:
            b.waiters.append(state)
            state.blocked = step
            return False
        b.passes_once(self, state, step, previous)
        event = self._event(state, step, b.complete[phase + 1])
        b.waits.setdefault(phase, []).append((event, state))
        return True

    def _arrive(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        expects = step.number if type(step.op) is ExpectTx else step.op.expect
        arrivals = 0 if type(step.op) is ExpectTx else step.number
        for key in step.keys:
            b = self._mbarrier(state, key, event)
            if key[0] != state.agent.cta:
                self.remote.append((event, key, state))
            b.contribute(self, event, state, arrivals=arrivals, expect=expects)
        return True

    def _commit(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        state.commits += 1
        number = state.commits

        def fire():
            # Complete when every multiply issued before is; commits are cumulative.
            joined = self.history.add((*state.mma_ends, *state.joined), None, None)
            state.mma_ends, state.joined = [], [joined]
            for key in step.keys:
                done = self.history.add((event, joined), None, ("commit", key, state))
                b = self._mbarrier(state, key, event)
                if key[0] != state.agent.cta:
                    self.remote.append((done, key, state))
                else:
                    self.ends.append((done, key[0], ("commit", state, number)))
                b.contribute(self, done, state, arrivals=step.number, by="commit")

        self.later.append(fire)
        return True

    # -- asynchronous copies

    def _load(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        if type(step.op) is ClcRequest:
            self.tensor.launch_request(self, state, event)
        for (place, tag), key in zip(step.writes, step.keys, strict=True):
            if place[0] >= self.program.cluster:
                self._mbarrier(state, key, event)
            self.memory.start_write(self, state, place, tag, event, answer=type(step.op) is ClcRequest)

            def land(place=place, key=key):
                end = self.history.add((event,), None, ("land", place, key, step.number))
                self.memory.end_write(place, end)
                b = self._mbarrier(state, key, event)
                self.ends.append((end, place[0], ("load", state, place)))
                b.contribute(self, end, state, deliver=step.number)

            self.later.append(land)
        return True

    def _store(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        for place, tag in step.reads:
            record = self.memory.start_read(self, state, place, tag, event, "async")

            def read_over(place=place, record=record):
                end = self.history.add((event, *state.store_chain), None, ("stored", place, state))
                state.store_chain = [end]
                record[1] = end
                self.ends.append((end, state.agent.cta, ("store", state, place)))
                self._ended(state)

            state.stores.append(record)
            self.later.append(read_over)
        return True

    def _ended(self, state: AgentState) -> None:
        if state.blocked is not None and type(state.blocked.op) in (WaitGroup, WaitStores):
            self.ready.append(state)
            state.blocked = None

    def _commit_stores(self, state: AgentState, step) -> bool:
        self._event(state, step)
        state.store_groups.append(state.stores)
        state.stores = []
        return True

    def _wait_stores(self, state: AgentState, step) -> bool:
        groups = state.store_groups[: max(0, len(state.store_groups) - step.op.pending)]
        return self._after(state, step, [record[1] for group in groups for record in group])

    def _after(self, state: AgentState, step, ends: list) -> bool:
        """The step happens after the ends of asynchronous work; blocks while one is missing."""
        if any(end is None for end in ends):
            state.blocked = step
            return False
        self._event(state, step, *ends[-1:])  # the ends of one agent are a chain
        return True

    # -- matrix multiplies

    def _mma(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        wgmma = step.op.unit == "wgmma"
        records = [self.memory.start_read(self, state, place, tag, event, "async") for place, tag in step.reads]
        for place, tag in step.writes:
            self.memory.accumulate(self, state, place, tag, event, bool(step.number))
        self._multiply(state, step, event, records, "all" if wgmma or state.copies else step.writes[0][0])
        return True

    def _copy(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        state.copies = True
        records = [self.memory.start_read(self, state, place, tag, event, "async") for place, tag in step.reads]
        for place, tag in step.writes:
            self.memory.copy(self, state, place, tag, event)
        self._multiply(state, step, event, records, "all")
        return True

    def _multiply(self, state: AgentState, step, event: int, records: list, name) -> None:
        """The end of a multiply or a copy, after the one before it under the same `name`."""
        group = [event, None]
        state.groups.append(group)

        def finish():
            # One accumulator's multiplies run in order (PTX ISA, tcgen05 and wgmma); wgmma groups complete in order.
            # Groups of tcgen05 on different accumulators are not promised any; with copies between them they are one
            # queue.
            end = self.history.add((event, *state.mma_chain.get(name, ())), None, ("multiplied", step, state))
            state.mma_chain[name] = [end]
            state.mma_ends.append(end)
            group[1] = end
            for record in records:
                record[1] = end
            for place, _ in step.writes:
                self.memory.end_write(place, end)
            touched = {place[0] for place, _ in (*step.reads, *step.writes)}
            self.ends.extend((end, cta, ("multiply", state, step)) for cta in touched)
            self._ended(state)

        self.later.append(finish)

    def _wait_group(self, state: AgentState, step) -> bool:
        return self._after(
            state, step, [g[1] for g in state.groups[: max(0, len(state.groups) - step.op.pending)]]
        )

    # -- memory

    def _read(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        for place, tag in step.reads:
            self.memory.start_read(self, state, place, tag, event, "generic")[1] = event
        if type(step.op) is ClcQuery:
            self.tensor.launch_query(self, state, step, event)
        return True

    def _write(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        for place, tag in step.writes:
            self.memory.start_write(self, state, place, tag, event, generic=True)
            self.memory.end_write(place, event)
            state.unfenced.append(place)
        return True

    def _fence(self, state: AgentState, step) -> bool:
        event = self._event(state, step)
        state.fences.append(event)
        for place in state.unfenced:
            self.memory.places[place].fence = event
        state.unfenced = []
        return True

    def _tmem(self, state: AgentState, step) -> bool:
        self.tensor.step(self, state, step, self._event(state, step))
        return True

    # -- barriers of threads

    def _named(self, state: AgentState, step) -> bool:
        op, key = step.op, step.keys[0]
        if not 1 <= op.id <= 15:
            why = "0 is that of __syncthreads" if op.id == 0 else "there are 16"
            self.fail(NAMED, f"{state.where} uses named barrier {op.id}; {why}", "use 1 to 15", *state.preds,
                      extra=(state.next_event(),))  # fmt: skip
        return self._meet(state, step, key, op.threads, step.number, op.wait)

    def _meet_all(self, state: AgentState, step) -> bool:
        key = step.keys[0]
        total = sum(self.warps) if key[1] == "cluster" else self.warps[key[0]]
        return self._meet(state, step, key, total, step.number, True)

    def _meet(self, state: AgentState, step, key: tuple, total: int, number: int, wait: bool) -> bool:
        meeting = self.meetings.setdefault(key, Meeting(key))
        event = self._event(state, step)
        meeting.join(self, state, event, total, number)
        if wait:
            state.blocked = step
            meeting.waiting.append(state)
        if meeting.arrived == meeting.total:
            done = self.history.add(meeting.events, None, None)
            for other in meeting.waiting:
                other.preds = [*other.preds, done]
                other.blocked = None
                if other is not state:
                    self.ready.append(other)
            meeting.next(done)
        return True
