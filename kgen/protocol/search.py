"""Every interleaving of a small protocol, one by one: explicit-state search with hashing and two plain reductions.

The slow second opinion on `order.py`, without any argument about order: states are visited breadth first. A state is
what the chip would hold: program counters, mbarriers, asynchronous work in flight, contents of buffers. The reductions:
a step that touches nothing another warp can see (its own boxes, accumulators, group waits that pass) is taken at once
and alone; and the end of a wgmma or of a store, which nobody but its own group wait sees and which can only make a
violation go away, comes as late as that wait allows. Warps are never merged: four arrivals in one step would hide that
one warp can arrive twice before another has arrived. For small trip counts and few warps: `limit` states, then
SearchLimit. Allocation of tensor memory and launch control are not looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kgen.protocol import events as E
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
    Wait,
    WaitGroup,
    WaitStores,
    Write,
)
from kgen.protocol.unroll import agents


class SearchLimit(Exception):
    """More states than allowed."""


class _Bad(Exception):
    pass


def search(program: Program, trips: Mapping[str, int], limit: int = 200_000) -> tuple[int, str | None]:
    """States visited, and the kind of the first violation in breadth-first order."""
    return _Search(program, trips, limit).run()


class _State:
    """A mutable copy of one state while a transition is taken."""

    def __init__(self, frozen):
        self.pcs, bars, meets, self.flying, places = (
            list(frozen[0]), dict(frozen[1]), dict(frozen[2]), set(frozen[3]), dict(frozen[4])
        )  # fmt: skip
        self.bars, self.meets, self.places = bars, meets, places

    def freeze(self):
        return (
            tuple(self.pcs), frozenset(self.bars.items()), frozenset(self.meets.items()), frozenset(self.flying),
            frozenset(self.places.items()),
        )  # fmt: skip


class _Search:
    def __init__(self, program: Program, trips: Mapping[str, int], limit: int):
        self.program, self.limit = program, limit
        self.agents = agents(program, trips, merge=False)
        self.count = {b.name: (b.count, b.depth) for b in program.barriers}
        self.steps = [a.steps for a in self.agents]
        # Positions of a role's own multiplies, stores and store groups, to know what a group wait covers.
        kinds = (AsyncMma, AsyncStore, CommitStores)
        self.of = [
            {kind: [i for i, s in enumerate(steps) if type(s.op) is kind] for kind in kinds}
            for steps in self.steps
        ]
        warps = [sum(a.warps for a in self.agents if a.cta == c) for c in range(program.cluster)]
        self.total = {(c, "cta", 0): w for c, w in enumerate(warps)} | {(0, "cluster", 0): sum(warps)}

    def run(self) -> tuple[int, str | None]:
        first = (tuple(0 for _ in self.agents), *(frozenset() for _ in range(4)))
        seen, queue = {first}, deque([first])
        while queue:
            frozen = queue.popleft()
            moves = 0
            try:
                for move in self._moves(frozen):
                    moves += 1
                    state = _State(frozen)
                    move(state)
                    after = state.freeze()
                    if after not in seen:
                        seen.add(after)
                        queue.append(after)
                if len(seen) > self.limit:
                    raise SearchLimit(f"more than {self.limit:,} states")
                self._final(frozen, moves)
            except _Bad as bad:
                return len(seen), bad.args[0]
        return len(seen), None

    def _final(self, frozen, moves: int) -> None:
        done = [pc == len(s) for pc, s in zip(frozen[0], self.steps, strict=True)]
        if not moves and not all(done):
            raise _Bad(E.DEADLOCK)
        for cta in range(self.program.cluster):
            if all(d for d, a in zip(done, self.agents, strict=True) if a.cta == cta) and any(
                cta in self._touches(op) and not self._told(op, frozen[3]) for op in frozen[3]
            ):
                raise _Bad(E.IN_FLIGHT)

    def _told(self, op, flying) -> bool:
        """Whether a commit to its own CTA is followed by one that has arrived: then it is no longer in flight."""
        agent, at, sub = op
        step = self.steps[agent][at]
        if type(step.op) is not Commit or step.keys[sub][0] != self.agents[agent].cta:
            return False
        later = [i for i, s in enumerate(self.steps[agent]) if i > at and type(s.op) is Commit]
        # An agent that has gone has taken every step.
        return any((agent, i, 0) not in flying for i in later)

    def _touches(self, op) -> set[int]:
        agent, at, sub = op
        step = self.steps[agent][at]
        if type(step.op) in (AsyncLoad, ClcRequest):
            return {step.writes[sub][0][0]}
        if type(step.op) is Commit:
            return {step.keys[sub][0]}
        return {p[0] for p, _ in (*step.reads, *step.writes)}

    # -- transitions

    def _moves(self, frozen):
        pcs, bars, flying = frozen[0], dict(frozen[1]), frozen[3]
        meets = dict(frozen[2])
        for i, pc in enumerate(pcs):
            if pc < len(self.steps[i]) and self._local(self.steps[i][pc]) and self._enabled(i, pc, bars, meets, flying):
                yield lambda state, i=i: self._step(state, i)
                return
        for i, pc in enumerate(pcs):
            if pc < len(self.steps[i]) and self._enabled(i, pc, bars, meets, flying):
                yield lambda state, i=i: self._step(state, i)
        for op in flying:
            if self._may_end(op, flying) and self._wanted(op, pcs):
                yield lambda state, op=op: self._end(state, op)

    def _local(self, step) -> bool:
        kind = type(step.op)
        if kind in (CommitStores, WaitGroup, WaitStores):
            return True
        return kind in (Read, Write, AsyncStore) and all("@" in p[1] for p, _ in (*step.reads, *step.writes))

    def _wanted(self, op, pcs) -> bool:
        """Whether anybody sees the end of an operation now."""
        agent, at, _ = op
        step = self.steps[agent][at]
        if type(step.op) is AsyncStore or (type(step.op) is AsyncMma and step.op.unit == "wgmma"):
            pc = pcs[agent]
            waiting = pc < len(self.steps[agent]) and type(self.steps[agent][pc].op) in (WaitGroup, WaitStores)
            return waiting and op in self._covered(agent, pc, self.steps[agent][pc])
        return True

    def _enabled(self, i: int, pc: int, bars, meets, flying) -> bool:
        step = self.steps[i][pc]
        kind = type(step.op)
        if kind is Wait:
            key = step.keys[0]
            if key not in bars:
                raise _Bad(E.EARLY)
            phase = bars[key][0]
            if phase > step.phase + 1:
                raise _Bad(E.ALIASING)
            if phase & 1 == step.number:
                return False
            if phase != step.phase + 1:
                raise _Bad(E.ALIASING)
            return True
        if kind in (WaitGroup, WaitStores):
            return not self._covered(i, pc, step) & flying
        if kind in (CtaBarrier, ClusterBarrier, NamedBarrier):
            return ("in", i) not in meets
        return True

    def _covered(self, i: int, pc: int, step) -> set:
        if type(step.op) is WaitGroup:
            started = [at for at in self.of[i][AsyncMma] if at < pc]
            return {(i, at, 0) for at in started[: max(0, len(started) - step.op.pending)]}
        groups = [at for at in self.of[i][CommitStores] if at < pc]
        if len(groups) <= step.op.pending:
            return set()
        last = groups[len(groups) - step.op.pending - 1]
        return {(i, at, 0) for at in self.of[i][AsyncStore] if at < last}

    def _may_end(self, op, flying) -> bool:
        agent, at, _ = op
        step = self.steps[agent][at]
        kind = type(step.op)
        earlier = [(a, n, s) for a, n, s in flying if a == agent and n < at]
        if kind is Commit:
            return not any(type(self.steps[a][n].op) in (AsyncMma, AsyncCopy) for a, n, _ in earlier)
        if kind is AsyncCopy:  # one queue with the multiplies
            return not any(type(self.steps[a][n].op) in (AsyncMma, AsyncCopy) for a, n, _ in earlier)
        if kind is AsyncMma:
            same = step.op.unit == "wgmma"
            before = [self.steps[a][n] for a, n, _ in earlier]
            return not any(
                type(b.op) is AsyncCopy or (type(b.op) is AsyncMma and (same or b.writes[0][0] == step.writes[0][0]))
                for b in before
            )
        if kind is AsyncStore:
            return not any(type(self.steps[a][n].op) is AsyncStore for a, n, _ in earlier)
        return True

    def _step(self, state: _State, i: int) -> None:
        pc = state.pcs[i]
        step = self.steps[i][pc]
        op, kind = step.op, type(step.op)
        if kind is Init:
            for name, (count, depth) in self.count.items():
                for stage in range(depth):
                    state.bars[(self.agents[i].cta, name, stage)] = (0, count, 0)
        elif kind in (Arrive, ExpectTx):
            arrivals, tx = (0, step.number) if kind is ExpectTx else (step.number, op.expect)
            for key in step.keys:
                self._signal(state, key, arrivals, tx)
        elif kind in (CtaBarrier, ClusterBarrier, NamedBarrier):
            self._meet(state, i, step)
            return
        elif kind in (AsyncLoad, ClcRequest):
            for sub, (place, tag) in enumerate(step.writes):
                self._write(state, place, tag)
                state.flying.add((i, pc, sub))
        elif kind is Commit:
            state.flying |= {(i, pc, sub) for sub in range(len(step.keys))}
        elif kind is AsyncCopy:
            for place, tag in step.reads:
                self._read(state, place, tag, asynchronous=True)
            for place, tag in step.writes:
                users = [*self._users(state, place, True), *self._users(state, place, False)]
                if any(agent != i for agent, _, _ in users):
                    raise _Bad(E.OVERWRITE)
                state.places[place] = (tag, -1)
            state.flying.add((i, pc, 0))
        elif kind is AsyncMma:
            for place, tag in step.reads:
                self._read(state, place, tag, asynchronous=True, queue=i)
            for place, tag in step.writes:
                mine = all(f[0] == i for f in self._users(state, place, writes=True))
                if not mine or self._users(state, place, writes=False):
                    raise _Bad(E.OVERWRITE)
                if not step.number and state.places.get(place, (None,))[0] != tag:
                    raise _Bad(E.INCOMPLETE)
                state.places[place] = (tag, -1)
            state.flying.add((i, pc, 0))
        elif kind is AsyncStore:
            for place, tag in step.reads:
                self._read(state, place, tag, asynchronous=True)
            state.flying.add((i, pc, 0))
        elif kind in (Read, ClcQuery):
            for place, tag in step.reads:
                self._read(state, place, tag)
        elif kind is Write:
            for place, tag in step.writes:
                self._write(state, place, tag)
                shared = self.program.buffer(place[1].split("@")[0]).space == "shared"
                state.places[place] = (tag, i if shared else -1)
        elif kind is Fence:
            for place, (tag, writer) in list(state.places.items()):
                if writer == i:
                    state.places[place] = (tag, -1)
        state.pcs[i] += 1

    def _meet(self, state: _State, i: int, step) -> None:
        key = step.keys[0]
        total = step.op.threads if type(step.op) is NamedBarrier else self.total[key]
        arrived = state.meets.get(key, 0) + step.number
        if getattr(step.op, "wait", True):
            state.meets[("in", i)] = key
        else:
            state.pcs[i] += 1
        if arrived > total:
            raise _Bad(E.NAMED)
        state.meets[key] = arrived
        if arrived == total:
            del state.meets[key]
            for who, where in list(state.meets.items()):
                if who[0] == "in" and where == key:
                    state.pcs[who[1]] += 1
                    del state.meets[who]

    def _end(self, state: _State, op) -> None:
        agent, at, sub = op
        step = self.steps[agent][at]
        state.flying.discard(op)
        if type(step.op) in (AsyncLoad, ClcRequest):
            self._signal(state, step.keys[sub], 0, -step.number)
        elif type(step.op) is Commit:
            self._signal(state, step.keys[sub], step.number, 0, self._told(op, state.flying))

    def _signal(self, state: _State, key, arrivals: int, tx: int, told: bool = False) -> None:
        if key[0] >= self.program.cluster:
            raise _Bad(E.NO_CTA)
        gone = all(state.pcs[a.index] == len(a.steps) for a in self.agents if a.cta == key[0])
        if gone and not told:
            raise _Bad(E.EXITED)
        if key not in state.bars:
            raise _Bad(E.EARLY if key[2] < self.count[key[1]][1] else E.RANGE)
        phase, pending, bytes_ = state.bars[key]
        pending, bytes_ = pending - arrivals, bytes_ + tx
        if pending < 0:
            raise _Bad(E.ARRIVALS)
        if pending == 0 and bytes_ == 0:
            phase, pending = phase + 1, self.count[key[1]][0]
        state.bars[key] = (phase, pending, bytes_)

    def _users(self, state: _State, place, writes: bool):
        """Asynchronous work in flight that writes (or reads) a place."""
        found = []
        for agent, at, sub in state.flying:
            step = self.steps[agent][at]
            if type(step.op) in (AsyncLoad, ClcRequest):
                hit = writes and step.writes[sub][0] == place
            else:
                hit = any(p == place for p, _ in (step.writes if writes else step.reads))
            if hit:
                found.append((agent, at, sub))
        return found

    def _write(self, state: _State, place, tag) -> None:
        if self._users(state, place, True) or self._users(state, place, False):
            raise _Bad(E.OVERWRITE)
        state.places[place] = (tag, -1)

    def _read(self, state: _State, place, tag, asynchronous: bool = False, queue: int | None = None) -> None:
        """`queue`: the agent whose own copies come before the read."""
        have, writer = state.places.get(place, (None, -1))
        flying = [
            (agent, at)
            for agent, at, _ in self._users(state, place, True)
            if agent != queue or type(self.steps[agent][at].op) is not AsyncCopy
        ]
        if have != tag or flying:
            raise _Bad(E.INCOMPLETE)
        if asynchronous and writer >= 0:
            raise _Bad(E.FENCE)
