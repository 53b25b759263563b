"""The vocabulary of barrier protocols: what each role of a CTA does, as far as synchronisation is concerned.

A `Program` is data. It holds what wgmma kernels need and what tcgen05 kernels need: mbarriers that count arrivals and
bytes, TMA loads to several CTAs, matrix multiplies completed by group waits or by commits, bulk store groups, named
barriers, tensor memory, cluster launch control. Loops have symbolic trip counts; a ring's cursor runs on from tile to
tile, as in the kernels. Bytes are bytes, counts are arrivals, columns are TMEM columns of 32 bits.

Semantics: PTX ISA, mbarrier, cp.async.bulk, wgmma, tcgen05 memory consistency and clusterlaunchcontrol sections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

# Which CTAs of a cluster an operation reaches: its own, all, its pair of ranks 2p and 2p+1 (tcgen05 cta_group::2), the
# even one of the pair, the odd one, or a 16-bit mask by rank.
Ctas = Literal["self", "all", "pair", "leader", "peer"] | int
Per = Literal["elected", "warp", "thread"]
Env = Mapping[str, int]


@dataclass(frozen=True)
class At:
    """A position in a ring: `ahead` entries past the role's cursor. Its stage and the parity of its lap follow."""

    ring: str
    ahead: int = 0


@dataclass(frozen=True)
class Ref:
    """A place that is read or written: `buffer` at the stage of `at`.

    `part` names the slice written ("rank": one per CTA of the cluster, "warp": one per warp); None is all of it.
    `tag` lists the loops whose iteration the data belongs to, `ahead` is added to the innermost: a reader must find
    the data of its own iteration.
    """

    buffer: str
    at: At | None = None
    part: Literal["rank", "warp"] | int | None = None
    tag: tuple[str, ...] = ("tile", "k")
    ahead: int = 0
    ctas: Ctas = "self"


class Op:
    """One step of a role."""


@dataclass(frozen=True)
class Init(Op):
    """Initialises every mbarrier of the CTA and publishes that (one thread)."""


@dataclass(frozen=True)
class Wait(Op):
    """Waits until the phase of the cursor's lap is complete; with `flip`, the phase before it (a ring that starts
    empty: the first lap passes at once)."""

    barrier: str
    at: At | None = None
    flip: int = 0


@dataclass(frozen=True)
class Arrive(Op):
    """`count` arrivals by each elected thread, warp or thread of the role, on the barrier of each of `ctas`; with
    `expect`, these also announce so many bytes (arrive.expect_tx)."""

    barrier: str
    at: At | None = None
    ctas: Ctas = "self"
    count: int = 1
    per: Per = "elected"
    expect: int = 0


@dataclass(frozen=True)
class ExpectTx(Op):
    """Announces bytes without arriving."""

    barrier: str
    at: At | None
    bytes: int
    ctas: Ctas = "self"


@dataclass(frozen=True)
class AsyncLoad(Op):
    """One thread starts a bulk copy into `into.ctas`; in each, `bytes` count towards `barrier` on completion.

    `signal` says whose barrier: that of each destination, or of one CTA for all (cta_group::2 loads signal the leader).
    """

    into: Ref
    bytes: int
    barrier: str
    at: At | None = None
    signal: Ctas | Literal["each"] = "each"


@dataclass(frozen=True)
class AsyncMma(Op):
    """Starts a matrix multiply: reads `reads` and writes `into` until it completes.

    wgmma: one committed group, all warps of the role take part; `WaitGroup` sees it complete.
    tcgen05: one thread issues; `Commit` sees it complete. `fresh` names the loop in whose first iteration the
    accumulator is overwritten; "always" overwrites, None accumulates.
    """

    reads: tuple[Ref, ...]
    into: Ref
    unit: Literal["wgmma", "tcgen05"] = "wgmma"
    fresh: str | None = "k"


@dataclass(frozen=True)
class AsyncCopy(Op):
    """tcgen05.cp: copies `reads`, in shared memory, to `into`, in tensor memory.

    One thread's copies and multiplies are one queue, done in turn: a multiply finds what an earlier copy has brought,
    and a copy overwrites what earlier multiplies have read. `Commit` sees it complete. (The document promises the
    first; for the second every public block-scaled kernel relies on it.)
    """

    reads: tuple[Ref, ...]
    into: Ref


@dataclass(frozen=True)
class WaitGroup(Op):
    """wgmma.wait_group: at most `pending` groups of this role stay in flight."""

    pending: int


@dataclass(frozen=True)
class Commit(Op):
    """tcgen05.commit: when all earlier multiplies of this thread are complete, one arrival per lane that issues it, on
    the barrier of each of `ctas`."""

    barrier: str
    at: At | None = None
    ctas: Ctas = "self"
    lanes: int = 1


@dataclass(frozen=True)
class Read(Op):
    """Generic reads (or tcgen05.ld with its wait), over when the next operation starts."""

    ref: Ref


@dataclass(frozen=True)
class Write(Op):
    """Generic writes; an asynchronous unit sees them only after a `Fence` of the writer."""

    ref: Ref


@dataclass(frozen=True)
class Fence(Op):
    """fence.proxy.async by every thread of the role."""


@dataclass(frozen=True)
class AsyncStore(Op):
    """One thread of each warp starts a bulk store that reads `ref`."""

    ref: Ref


@dataclass(frozen=True)
class CommitStores(Op):
    """cp.async.bulk.commit_group: the stores since the last one become a group, possibly empty."""


@dataclass(frozen=True)
class WaitStores(Op):
    """cp.async.bulk.wait_group.read: at most `pending` groups still read shared memory."""

    pending: int


@dataclass(frozen=True)
class NamedBarrier(Op):
    """bar.sync (or with wait=False bar.arrive) `id` for `threads` threads of the CTA."""

    id: int
    threads: int
    wait: bool = True


@dataclass(frozen=True)
class CtaBarrier(Op):
    """__syncthreads: every thread of the CTA."""


@dataclass(frozen=True)
class ClusterBarrier(Op):
    """barrier.cluster arrive and wait: every thread of every CTA of the cluster."""


@dataclass(frozen=True)
class TmemAlloc(Op):
    """One whole warp allocates TMEM columns; a "pair" does it together (cta_group::2), each CTA its own."""

    columns: int
    ctas: Ctas = "self"


@dataclass(frozen=True)
class TmemRelinquish(Op):
    """The CTA gives up its right to allocate."""


@dataclass(frozen=True)
class TmemDealloc(Op):
    """One whole warp frees TMEM columns; likewise."""

    columns: int
    ctas: Ctas = "self"


@dataclass(frozen=True)
class ClcRequest(Op):
    """clusterlaunchcontrol.try_cancel: 16 bytes of response land in `into`. It succeeds while tiles are left."""

    into: Ref
    barrier: str
    at: At | None = None


@dataclass(frozen=True)
class ClcQuery(Op):
    """Reads a response, and learns whether there is another tile."""

    ref: Ref


@dataclass(frozen=True)
class Advance(Op):
    """Moves this role's cursor of a ring to the next entry."""

    ring: str


@dataclass(frozen=True)
class Copy(Op):
    """Starts the cursor `ring` where that of `of` stands."""

    ring: str
    of: str


@dataclass(frozen=True)
class Loop(Op):
    """`body` for var = 0 .. count-1. `count` is a number, the name of a trip count, or a function of the loops around.

    Roles that share a loop by name must run it equally often.
    """

    var: str
    count: int | str | Callable[[Env], int]
    body: tuple[Op, ...]


@dataclass(frozen=True)
class When(Op):
    """`body` where `test` holds of the loop variables and trip counts; `text` says so in words."""

    text: str
    test: Callable[[Env], bool]
    body: tuple[Op, ...]


@dataclass(frozen=True)
class One(Op):
    """What one thread of the role's first warp does while the others go on."""

    body: tuple[Op, ...]


@dataclass(frozen=True)
class Ring:
    """`depth` stages, used in turn."""

    name: str
    depth: int


@dataclass(frozen=True)
class BarrierArray:
    """`depth` mbarriers initialised to `count` arrivals each. `who` says of what the count is the sum."""

    name: str
    depth: int
    count: int
    who: str = ""


@dataclass(frozen=True)
class Buffer:
    """`depth` places for data in each CTA, or for each warp where `private`. `parts` slices are written separately."""

    name: str
    depth: int = 1
    parts: int = 1
    private: bool = False
    space: Literal["shared", "registers", "tmem"] = "shared"


@dataclass(frozen=True)
class Role:
    """`warps` warps (of each CTA in `ctas`) that run `before`, `work`, `after` in turn. `before` and `after` are what
    the CTA does together."""

    name: str
    warps: int
    work: tuple[Op, ...]
    before: tuple[Op, ...] = ()
    after: tuple[Op, ...] = ()
    ctas: tuple[int, ...] | None = None  # None: every CTA of the cluster
    trips: Mapping[str, int] = field(default_factory=dict)  # added to trip counts; for what-if questions
    depths: Mapping[str, int] = field(default_factory=dict)  # added to the depth of rings; likewise

    @property
    def body(self) -> tuple[Op, ...]:
        return (*self.before, *self.work, *self.after)


@dataclass(frozen=True)
class Program:
    """The protocol of one kernel. Where there is more than one role, none may meet all others while it works.

    `least` and `most` bound trip counts that can occur at all ("k": 1 where the launcher refuses fewer); `why` says so.
    """

    name: str
    cluster: int
    roles: tuple[Role, ...]
    barriers: tuple[BarrierArray, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    rings: tuple[Ring, ...] = ()
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    tmem_columns: int = 512
    # (cta, loop) -> iterations added there: what the launch does unevenly, for what-if questions
    uneven: Mapping[tuple[int, str], int] = field(default_factory=dict)

    def barrier(self, name: str) -> BarrierArray:
        return next(b for b in self.barriers if b.name == name)

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def ring(self, name: str) -> Ring:
        return next(r for r in self.rings if r.name == name)


def reach(ctas: Ctas, rank: int, cluster: int) -> tuple[int, ...]:
    """Ranks of the CTAs that `ctas` names for the CTA of `rank`; a mask may name ranks that do not exist."""
    if ctas == "self":
        return (rank,)
    if ctas == "all":
        return tuple(range(cluster))
    if ctas == "pair":
        return (rank & ~1, rank | 1)
    if ctas == "leader":
        return (rank & ~1,)
    if ctas == "peer":
        return (rank ^ 1,)
    return tuple(bit for bit in range(16) if ctas >> bit & 1)


def walk(ops: tuple[Op, ...]):
    """Every operation, those in loops and conditions after the loop or condition itself."""
    for op in ops:
        yield op
        if isinstance(op, Loop | When | One):
            yield from walk(op.body)
