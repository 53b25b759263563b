"""Role programs at given trip counts: one straight list of steps per agent.

An agent is a warp, or several warps of a role that behave alike. Merging them is sound where nothing can tell them
apart: they write no memory that another of them may touch (their accumulators and store boxes are private), each takes
part in every step (no step is one elected thread's), so a path of "happens before" that enters the merged agent does so
by a wait that each warp performs, and one that leaves it does so by an arrival that counts only when all have arrived.
The one order that merging adds is that between steps of different warps of the agent itself, and no condition that
`order.py` checks compares such steps. Roles where this fails are split into warps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncCopy,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    At,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    Copy,
    CtaBarrier,
    ExpectTx,
    Init,
    Loop,
    NamedBarrier,
    One,
    Op,
    Program,
    Read,
    Ref,
    Role,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    When,
    Write,
    reach,
    walk,
)


@dataclass(frozen=True)
class Step:
    """One operation of one agent with everything resolved.

    `keys` are the barriers concerned, as (cta, name, stage); `reads` and `writes` places (cta, name, stage, part) with
    their tags; `number` a count, a parity or bytes, by operation.
    """

    op: Op
    env: tuple[int, ...]
    keys: tuple = ()
    reads: tuple = ()
    writes: tuple = ()
    number: int = 0
    phase: int = 0  # that a wait means


@dataclass
class Agent:
    """A warp or several alike, with its steps. `trips` counts iterations of each loop, in all."""

    cta: int
    role: Role
    warps: int
    warp: int
    index: int
    steps: list[Step]
    trips: dict[str, int]

    @property
    def name(self) -> str:
        several = self.role.warps > 1 and self.warps == 1
        return f"{self.role.name}.{self.warp}" if several else self.role.name


_ELECTED = (Init, ExpectTx, AsyncLoad, AsyncCopy, Commit, ClcRequest, TmemAlloc, TmemDealloc, TmemRelinquish)

_MEET = (CtaBarrier, ClusterBarrier)


def mergeable(program: Program, role: Role) -> bool:
    """Whether the warps of a role may stand for each other (see above)."""
    # Initialising is one thread's, but the others cannot tell where all meet right after it.
    met = len(role.before) > 1 and isinstance(role.before[0], Init) and isinstance(role.before[1], _MEET)
    for op in walk(role.body[1:] if met else role.body):
        if isinstance(op, (One, *_ELECTED)) or (isinstance(op, Arrive) and op.per == "elected"):
            return False
        if isinstance(op, Write) and not program.buffer(op.ref.buffer).private:
            return False
        if isinstance(op, AsyncMma) and (op.unit == "tcgen05" or not program.buffer(op.into.buffer).private):
            return False
    return True


def agents(program: Program, trips: Mapping[str, int], merge: bool = True) -> list[Agent]:
    """Every agent of one cluster, unrolled over `trips` (name -> iterations)."""
    made: list[Agent] = []
    for cta in range(program.cluster):
        for role in program.roles:
            if role.ctas is not None and cta not in role.ctas:
                continue
            whole = role.warps == 1 or (merge and mergeable(program, role))
            for warp in range(1 if whole else role.warps):
                agent = Agent(cta, role, role.warps if whole else 1, warp, len(made), [], {})
                _Unroller(program, agent, trips).run()
                made.append(agent)
    return made


class _Unroller:
    def __init__(self, program: Program, agent: Agent, trips: Mapping[str, int]):
        self.program, self.agent, self.role = program, agent, agent.role
        self.env = {name: n + self.role.trips.get(name, 0) for name, n in trips.items()}
        for (cta, name), more in program.uneven.items():
            if cta == agent.cta:
                self.env[name] = max(0, self.env[name] + more)
        self.depth = {r.name: r.depth + self.role.depths.get(r.name, 0) for r in program.rings}
        self.cursor = dict.fromkeys(self.depth, 0)
        self.loops: list[str] = []
        self.barriers = {b.name: b for b in program.barriers}
        self.buffers = {b.name: b for b in program.buffers}

    def run(self) -> None:
        self._ops(self.role.body)

    def _ops(self, ops: tuple[Op, ...]) -> None:
        for op in ops:
            kind = type(op)
            if kind is Loop:
                self._loop(op)
            elif kind is When:
                if op.test(self.env):
                    self._ops(op.body)
            elif kind is One:
                if self.agent.warp == 0:
                    self._ops(op.body)
            elif kind is Advance:
                self.cursor[op.ring] += 1
            elif kind is Copy:
                self.cursor[op.ring] = self.cursor[op.of]
            elif self.agent.warp == 0 or not self._elected(op):
                self.agent.steps.append(self._step(op))

    def _elected(self, op: Op) -> bool:
        return isinstance(op, _ELECTED) or (isinstance(op, Arrive) and op.per == "elected")

    def _loop(self, op: Loop) -> None:
        count = op.count
        count = count if isinstance(count, int) else self.env[count] if isinstance(count, str) else count(self.env)
        self.loops.append(op.var)
        for i in range(count):
            self.env[op.var] = i
            self._ops(op.body)
        self.loops.pop()
        self.env.pop(op.var, None)
        self.agent.trips[op.var] = self.agent.trips.get(op.var, 0) + count

    def _place(self, at: At | None) -> tuple[int, int]:
        """Stage and lap."""
        if at is None:
            return 0, 0
        lap, stage = divmod(self.cursor[at.ring] + at.ahead, self.depth[at.ring])
        return stage, lap

    def _keys(self, barrier: str, at: At | None, ctas) -> tuple:
        stage = self._place(at)[0]
        return tuple((c, barrier, stage) for c in reach(ctas, self.agent.cta, self.program.cluster))

    def _places(self, ref: Ref) -> tuple:
        """((cta, buffer, stage, part), tag) of every slice."""
        buffer, stage = self.buffers[ref.buffer], self._place(ref.at)[0]
        name = f"{ref.buffer}@{self.agent.index}" if buffer.private else ref.buffer
        tag = tuple(self.env.get(v, -1) for v in ref.tag)
        if ref.ahead:
            tag = (*tag[:-1], tag[-1] + ref.ahead)
        part = {"rank": self.agent.cta, "warp": self.agent.warp}.get(ref.part, ref.part)
        parts = range(buffer.parts) if part is None else (part,)
        ctas = reach(ref.ctas, self.agent.cta, self.program.cluster)
        return tuple(((c, name, stage, p), tag) for c in ctas for p in parts)

    def _step(self, op: Op) -> Step:
        env = tuple(self.env[v] for v in self.loops)
        kind = type(op)
        if kind is Wait:
            stage, lap = self._place(op.at)
            phase = lap - op.flip
            return Step(op, env, ((self.agent.cta, op.barrier, stage),), number=phase & 1, phase=phase)
        if kind is Arrive:
            units = {"elected": 1, "warp": self.agent.warps, "thread": 32 * self.agent.warps}[op.per]
            return Step(op, env, self._keys(op.barrier, op.at, op.ctas), number=op.count * units)
        if kind is ExpectTx:
            return Step(op, env, self._keys(op.barrier, op.at, op.ctas), number=op.bytes)
        if kind is Commit:
            return Step(op, env, self._keys(op.barrier, op.at, op.ctas), number=op.lanes)
        if kind is AsyncLoad or kind is ClcRequest:
            into = self._places(op.into)
            stage = self._place(op.at)[0]
            signal = getattr(op, "signal", "each")
            if signal == "each":
                keys = tuple((place[0], op.barrier, stage) for place, _ in into)
            else:
                keys = self._keys(op.barrier, op.at, signal) * len(into)
            return Step(op, env, keys, writes=into, number=getattr(op, "bytes", 16))
        if kind is AsyncMma:
            fresh = op.fresh == "always" or (op.fresh is not None and self.env.get(op.fresh, 0) == 0)
            reads = tuple(p for ref in op.reads for p in self._places(ref))
            return Step(op, env, reads=reads, writes=self._places(op.into), number=int(fresh))
        if kind is AsyncCopy:
            reads = tuple(p for ref in op.reads for p in self._places(ref))
            return Step(op, env, reads=reads, writes=self._places(op.into))
        if kind is Read or kind is ClcQuery or kind is AsyncStore:
            return Step(op, env, reads=self._places(op.ref))
        if kind is Write:
            return Step(op, env, writes=self._places(op.ref))
        if kind is NamedBarrier:
            return Step(op, env, ((self.agent.cta, f"named {op.id}", 0),), number=32 * self.agent.warps)
        if kind is CtaBarrier:
            return Step(op, env, ((self.agent.cta, "cta", 0),), number=self.agent.warps)
        if kind is ClusterBarrier:
            return Step(op, env, ((0, "cluster", 0),), number=self.agent.warps)
        return Step(op, env)
