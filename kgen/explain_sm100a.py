"""What only Blackwell has to explain: the map of tensor memory, and how a pair of CTAs shares one tile.

Pure: plan -> records. A section is None where the plan has no such thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.plan.common import GemmPlan
from kgen.plan.resources import Barrier

ISSUER = "mma"  # the role whose work one CTA does for both


@dataclass(frozen=True)
class TmemLine:
    """Columns `first` to `last` of tensor memory."""

    name: str
    first: int
    last: int
    columns: int
    why: str


@dataclass(frozen=True)
class Tmem:
    """Columns of tensor memory: per CTA what is used and allocated, per SM what `limit` there is and stays free."""

    regions: tuple[TmemLine, ...]
    used: int
    allocated: int
    allocator: str
    ctas_per_sm: int
    limit: int
    free: int


@dataclass(frozen=True)
class PairCta:
    """What one CTA of a pair holds: half-open ranges of the pair's rows of A, B and D, and D's columns."""

    rank: int
    a_rows: tuple[int, int]
    b_rows: tuple[int, int]
    d_rows: tuple[int, int]
    d_columns: tuple[int, int]
    issues: bool
    stage_bytes: int


@dataclass(frozen=True)
class Signal:
    """Who completes a barrier, and in which CTAs it lies."""

    barrier: str
    by: str
    from_ctas: tuple[int, ...]
    in_ctas: tuple[int, ...]
    waiter: str


@dataclass(frozen=True)
class Pair:
    """A tile of D by two CTAs. `mma` is one instruction over both; `stage_bytes` is what both load per k tile."""

    tile: tuple[int, int]
    mma: tuple[int, int, int]
    ctas: tuple[PairCta, ...]
    signals: tuple[Signal, ...]
    stage_bytes: int


def tmem(plan: GemmPlan) -> Tmem | None:
    """The columns of one CTA, and what its SM has left."""
    if plan.tmem is None:
        return None
    t, residents, limit = plan.tmem, plan.launch.ctas_per_sm, plan.arch.tmem_columns
    lines = tuple(TmemLine(r.name, r.first, r.first + r.columns - 1, r.columns, r.why) for r in t.regions)
    return Tmem(lines, t.used, t.allocated, t.allocator, residents, limit, limit - residents * t.allocated)


def pair(plan: GemmPlan) -> Pair | None:
    """The split: rows of A and D go by CTA; B's rows are halved, and the tensor cores read both halves."""
    if plan.cta_group == 1:
        return None
    (rows, columns, depth), ranks = plan.cta_tile, range(plan.cta_group)
    slice_ = columns // plan.cta_group
    bytes_ = int(plan.operand_bytes(rows + slice_, depth) + plan.scale_bytes(rows + columns, depth))
    ctas = tuple(
        PairCta(
            rank=r,
            a_rows=(r * rows, (r + 1) * rows),
            b_rows=(r * slice_, (r + 1) * slice_),
            d_rows=(r * rows, (r + 1) * rows),
            d_columns=(0, columns),
            issues=r == 0,
            stage_bytes=bytes_,
        )
        for r in ranks
    )
    signals = tuple(_signal(b, tuple(ranks)) for b in plan.barriers)
    return Pair(plan.cluster_tile, plan.mma_shape, ctas, signals, bytes_ * plan.cta_group)


def _signal(b: Barrier, both: tuple[int, ...]) -> Signal:
    """A barrier lies where its waiter runs. Commits come from the issuer alone; bytes and arrivals from both CTAs."""
    commits = all(a.per == "commit" for a in b.arrivers)
    if b.deliveries:
        by = "TMA, announced by CTA 0's " + ", ".join(a.role for a in b.arrivers)
    else:
        by = ", ".join(("commit of " if commits else "") + a.role for a in b.arrivers)
    return Signal(
        barrier=b.name,
        by=by,
        from_ctas=(0,) if commits else both,
        in_ctas=(0,) if b.waiter == ISSUER else both,
        waiter=b.waiter,
    )
