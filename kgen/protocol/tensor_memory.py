"""Tensor memory (allocated and freed once, by whole warps) and cluster launch control (one request after another)."""

from __future__ import annotations

from kgen.protocol.events import CLC, LAUNCHED, TMEM, History
from kgen.protocol.memory import Memory
from kgen.protocol.program import Program, TmemAlloc, TmemDealloc, reach
from kgen.protocol.words import cta_of


class TensorMemory:
    """Allocations by CTA, and the answers to launch-control requests."""

    def __init__(self, program: Program, history: History, memory: Memory):
        self.program, self.history, self.memory = program, history, memory
        self.held: dict[int, list[tuple[int, object]]] = {}  # CTA -> (columns, by whom)
        self.given_up: set[int] = set()
        self.failures: list[tuple[int, int]] = []  # (event, CTA): a failed response was read

    def step(self, run, state, step, event: int) -> None:
        cta, op = state.agent.cta, step.op
        held = self.held.setdefault(cta, [])
        if type(op) is TmemAlloc:
            self._launched(run, state, reach(op.ctas, cta, self.program.cluster), event)
            if cta in self.given_up:
                run.fail(TMEM, f"{state.where} allocates after the permit was given up", "relinquish last", event)
            if op.columns not in (32, 64, 128, 256, 512):
                run.fail(TMEM, f"{op.columns} columns; a power of two from 32 to 512", "round up", event)
            total = op.columns + sum(columns for columns, _ in held)
            if total > self.program.tmem_columns:
                run.fail(TMEM, f"{cta_of(cta)} holds {total} columns; there are {self.program.tmem_columns}, so the "
                         "allocation blocks for ever", "allocate once", event)  # fmt: skip
            held.append((op.columns, state))
            self.memory.allocated.setdefault(cta, event)
        elif type(op) is TmemDealloc:
            mine = next((h for h in held if h[0] == op.columns), None)
            if mine is None:
                run.fail(TMEM, f"{state.where} frees {op.columns} columns that are not allocated",
                         "one warp frees, once", event)  # fmt: skip
            held.remove(mine)
            if not held:
                self._all_over(run, state, cta, event)
        else:
            self.given_up.add(cta)

    def _launched(self, run, state, ctas: tuple[int, ...], event: int) -> None:
        """Who allocates for a pair must make sure that the other CTA has been launched (PTX ISA, tcgen05.alloc)."""
        for other in ctas:
            started = [s.started for s in run.agents if s.agent.cta == other]
            if other != state.agent.cta and not any(self.history.before(s, event) for s in started):
                run.fail(LAUNCHED, f"{state.where} allocates for a pair, and {cta_of(other)} may not run yet",
                         "synchronise the cluster before the allocation", event)  # fmt: skip

    def _all_over(self, run, state, cta: int, event: int) -> None:
        before = self.history.before
        for key, place in self.memory.places.items():
            if key[0] != cta or self.memory.spaces[key[1].split("@")[0]].space != "tmem":
                continue
            ends = [place.end, *(end for _, end, _ in place.reads)]
            if any(end is None or not before(end, event) for end in ends):
                run.fail(TMEM, f"{state.where} may free tensor memory while {key[1]}[{key[2]}] is in use",
                         "a barrier between the last use and the free", event)  # fmt: skip
        self.memory.freed[cta] = event

    def all_freed(self, run, exits: list[int]) -> None:
        """At exit nothing may be left allocated: a leak blocks the next CTA on the SM."""
        for cta, held in self.held.items():
            for columns, state in held:
                run.fail(TMEM, f"{cta_of(cta)} exits with {columns} columns that {state.where} allocated",
                         "one warp frees what was allocated", exits[cta])  # fmt: skip

    # Cluster launch control

    def launch_request(self, run, state, event: int) -> None:
        """A request after a failed response was read is undefined."""
        for seen, cta in self.failures:
            if cta == state.agent.cta and self.history.before(seen, event):
                run.fail(CLC, f"{state.where} asks for another tile after it has seen a failure", "end the loop",
                         event)  # fmt: skip

    def launch_query(self, run, state, step, event: int) -> None:
        """The answer to the request of iteration i is a failure once no tile is left."""
        (_, tag), *_ = step.reads
        if tag[0] >= run.trips["tiles"] - 1:
            self.failures.append((event, state.agent.cta))
