"""The protocol of a planned Blackwell GEMM.

Each function here says what one template says: `producer` is role/producer.cu with its fill and its drain, `issuer` is
role/mma.cu, `epilogue` role/epilogue.cu with the store, `thread_loop`, `one_stage` and `ring_loop` the main loops of
one warpgroup. A test extracts the calls from the rendered kernels and compares.
"""

from __future__ import annotations

from kgen.plan.common import GemmPlan
from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncCopy,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    At,
    BarrierArray,
    Buffer,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    CommitStores,
    CtaBarrier,
    Fence,
    Init,
    Loop,
    One,
    Op,
    Program,
    Read,
    Ref,
    Ring,
    Role,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    WaitStores,
    When,
    Write,
)

RING, ACC, DONE, CLC = At("ring"), At("acc"), At("done"), At("clc")
K, TILES = "k_tiles", "tiles"


def program_of(plan: GemmPlan) -> Program:
    """The protocol of a plan."""
    staging, stages, slots = _constant(plan, "STAGING", 0), plan.stages, _slots(plan)
    specialized = len(plan.roles) > 1
    return Program(
        name=plan.name,
        cluster=plan.cta_group,
        roles=_specialized(plan) if specialized else _unified(plan),
        barriers=tuple(_barrier_arrays(plan)),
        buffers=(
            Buffer("a", stages, 1 if _by_tma(plan) else 4),
            Buffer("b", stages, 1 if _by_tma(plan) else 4),
            *([Buffer("sfa", stages), Buffer("sfb", stages)] if plan.scales else []),
            *(Buffer(_named("tmem", c, plan), slots, space="tmem") for c in range(_consumers(plan))),
            *(Buffer(_named("scales", c, plan), space="tmem") for c in range(_consumers(plan)) if plan.scales),
            *([Buffer("d", staging, private=True)] if staging else []),
            *([Buffer("clc", _answers(plan))] if _answers(plan) else []),
        ),
        rings=(Ring("ring", stages), Ring("fill", stages), Ring("acc", slots), Ring("done", 1),
               *([Ring("turn", staging)] if staging else []),
               *([Ring("clc", _answers(plan))] if _answers(plan) else [])),
        least={K: 1},
        most={K: plan.k_tiles} if plan.k_tiles else {},
        why="the launcher refuses k < 1",
    )  # fmt: skip


def _constant(plan: GemmPlan, name: str, default: int) -> int:
    return next((c.value for group in plan.constants for c in group if c.name == name), default)


def _consumers(plan: GemmPlan) -> int:
    return _constant(plan, "NUM_CONSUMERS", 1)


def _slots(plan: GemmPlan) -> int:
    """Accumulators of one consumer."""
    return _constant(plan, "ACCUMULATORS", 1)


def _answers(plan: GemmPlan) -> int:
    """Answers of launch control at a time; 0 where it hands out nothing."""
    return _constant(plan, "CLC_SLOTS", 0)


def _by_tma(plan: GemmPlan) -> bool:
    return len(plan.pipelines) > 1


def _named(what: str, consumer: int, plan: GemmPlan) -> str:
    """A consumer's own part of an array."""
    return f"{what} {consumer}" if _consumers(plan) > 1 else what


def _barrier_arrays(plan: GemmPlan):
    """The plan's barriers; those of the accumulators apart for each consumer."""
    for b in plan.barriers:
        who = " + ".join(map(str, b.arrivers))
        if b.name.startswith("acc"):
            for c in range(_consumers(plan)):
                yield BarrierArray(_named(b.name, c, plan), _slots(plan), b.arrivals, who)
        else:
            yield BarrierArray(b.name, b.depth, b.arrivals, who)


def _ctas(plan: GemmPlan, pair: str) -> str:
    return pair if plan.cta_group > 1 else "self"


def _tile(*body: Op) -> Loop:
    return Loop("tile", TILES, body)


def _k_loop(*body: Op) -> Loop:
    return Loop("k", K, body)


def _accumulator(plan: GemmPlan, consumer: int = 0, ctas: str = "self") -> Ref:
    return Ref(_named("tmem", consumer, plan), ACC, tag=("tile",), ctas=ctas)


def loads(plan: GemmPlan, at: At, ahead: int = 0, loop: str = "k") -> tuple[Op, ...]:
    """The copies of one k tile into this CTA, the boxes of an operand as one; a pair's first CTA counts the bytes of
    both."""
    signal = "leader" if plan.cta_group > 1 else "each"
    return tuple(
        AsyncLoad(Ref(d.operand, at, None, ("tile", loop), ahead), d.bytes // plan.cta_group, "full", at, signal)
        for d in plan.pipelines[0].full.deliveries
    )


def announce(plan: GemmPlan, at: At) -> Arrive:
    return Arrive("full", at, expect=plan.pipelines[0].full.tx_bytes)


def multiply(plan: GemmPlan, at: At | None, consumer: int = 0) -> AsyncMma:
    whole = _ctas(plan, "pair")
    operands = (Ref("a", at, ctas=whole), Ref("b", at, ctas=whole))
    if plan.scales:
        operands += (_scales(plan, consumer),)
    return AsyncMma(operands, _accumulator(plan, consumer, whole), "tcgen05")


def _scales(plan: GemmPlan, consumer: int) -> Ref:
    return Ref(_named("scales", consumer, plan), ctas=_ctas(plan, "pair"))


def copy_scales(plan: GemmPlan, at: At, consumer: int) -> tuple[Op, ...]:
    """copy_scales of mma_scaled.cu: one instruction has each CTA of a pair copy its own."""
    if not plan.scales:
        return ()
    whole = _ctas(plan, "pair")
    return (AsyncCopy((Ref("sfa", at, ctas=whole), Ref("sfb", at, ctas=whole)), _scales(plan, consumer)),)


def release(plan: GemmPlan, consumer: int) -> tuple[Op, ...]:
    """role/release_cta.cu and release_pair.cu; one warpgroup needs none."""
    if len(plan.roles) == 1:
        return ()
    return (Arrive(_named("acc_empty", consumer, plan), ACC, _ctas(plan, "leader"), per="warp"),)


def _parts_of_a_box(plan: GemmPlan) -> int:
    """How often a warp reads columns of the accumulator until it has filled a store box."""
    return next(t.box_columns for t in plan.tensor_maps if t.operand == "d") // plan.chunk


def _boxes(plan: GemmPlan, staging: int) -> int:
    """Store boxes per tile and warp. The boxes are the warp's own, so that a lap more or less of their ring changes
    nothing for anybody else: as many are checked as leave the same box next, with two laps at most."""
    boxes = plan.out_columns // plan.chunk // _parts_of_a_box(plan)
    return min(boxes, 2 * staging + boxes % staging)


def store(plan: GemmPlan, consumer: int = 0) -> tuple[Op, ...]:
    """How an accumulator leaves, per warp; it is released when its last columns have been read."""
    staging = _constant(plan, "STAGING", 0)
    read = Read(_accumulator(plan, consumer))
    if not staging:
        return (read, *release(plan, consumer))
    boxes = _boxes(plan, staging)
    if plan.split_k > 1:
        return share_then_store(plan, read, boxes, staging, consumer)
    box = Ref("d", At("turn"), tag=("tile", "box"))
    last, parts = release(plan, consumer), _parts_of_a_box(plan)
    if parts > 1:
        ends = When("last columns", lambda e: (e["box"], e["part"]) == (boxes - 1, parts - 1), last)
        filled = Loop("part", parts, (read, *([ends] if last else []), Write(box)))
        out = (Fence(), AsyncStore(box), CommitStores(), Advance("turn"))
        return (Loop("box", boxes, (WaitStores(staging - 1), filled, *out)),)
    return (
        Loop("box", boxes, (
            read, *([When("last columns", lambda e: e["box"] == boxes - 1, last)] if last else []),
            WaitStores(staging - 1), Write(box), Fence(), AsyncStore(box), CommitStores(), Advance("turn"),
        )),
    )  # fmt: skip


def share_then_store(plan: GemmPlan, read: Read, boxes: int, staging: int, consumer: int) -> tuple[Op, ...]:
    """split_k/share.cu, then the store by whoever comes last. That is decided while the kernel runs; here every other
    tile is the warp's to store, so that tiles with and without a store follow each other."""
    box = Ref("d", At("turn"), tag=("tile", "box"))
    parts = _parts_of_a_box(plan)
    filled = Loop("part", parts, (Write(box),)) if parts > 1 else Write(box)
    last = When("the columns are the last", lambda e: e["part"] == parts * boxes - 1, release(plan, consumer))
    stored = Loop("box", boxes, (
        WaitStores(staging - 1), filled, Fence(), AsyncStore(box), CommitStores(), Advance("turn"),
    ))  # fmt: skip
    return (
        Loop("part", parts * boxes, (read, last)),
        When("this split comes last", lambda e: e["tile"] % 2 == 0, (stored,)),
    )


def drain(plan: GemmPlan) -> tuple[Op, ...]:
    return (WaitStores(0),) if _constant(plan, "STAGING", 0) else ()


# One warpgroup


def thread_loop(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/threads_loop.cu and threads_once.cu. Each k tile's commit completes a phase of acc_full."""
    return (
        _k_loop(Write(Ref("a", part="warp")), Write(Ref("b", part="warp")), Fence(), CtaBarrier(),
                One((multiply(plan, None), Commit("acc_full", DONE))), Wait("acc_full", DONE),
                Advance("done")),
    )  # fmt: skip


def one_stage(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/tma_loop.cu."""
    loop = _k_loop(Wait("empty", RING, 1), announce(plan, RING), *loads(plan, RING), Wait("full", RING),
                   multiply(plan, RING), Commit("empty", RING), Advance("ring"))  # fmt: skip
    return (One((loop, Commit("acc_full", DONE))), Wait("acc_full", DONE), Advance("done"))


def ring_loop(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/tma_ring.cu."""
    stages, fill = plan.stages, At("fill")
    prologue = Loop("fill", lambda e: min(e[K], stages), (
        Wait("empty", fill, 1), announce(plan, fill), *loads(plan, fill, loop="fill"), Advance("fill"),
    ))  # fmt: skip
    refill = When(
        "k > 0 and a k tile one lap ahead exists",
        lambda e: e["k"] > 0 and e["k"] + stages - 1 < e[K],
        (Wait("empty", fill, 1), announce(plan, fill), *loads(plan, fill, stages - 1), Advance("fill")),
    )
    loop = _k_loop(Wait("full", RING), multiply(plan, RING), Commit("empty", RING), Advance("ring"), refill)
    return (One((prologue, loop, Commit("acc_full", DONE))), Wait("acc_full", DONE), Advance("done"))


def _unified(plan: GemmPlan) -> tuple[Role, ...]:
    tma_loop = ring_loop if plan.stages > 1 else one_stage
    loop = tma_loop(plan) if _by_tma(plan) else thread_loop(plan)
    between = (CtaBarrier(),) if plan.schedule == "persistent" else ()
    allocate = One((TmemAlloc(plan.tmem.allocated), TmemRelinquish()))
    free = One((TmemDealloc(plan.tmem.allocated),))
    work = (_tile(*loop, *store(plan), *between), *drain(plan))
    return (Role(plan.roles[0].name, 4, work, (Init(), allocate, CtaBarrier()), (CtaBarrier(), free)),)


# Roles


def answer(ctas: str = "self") -> Ref:
    return Ref("clc", CLC, tag=("tile",), ctas=ctas)


def next_tile(plan: GemmPlan) -> tuple[Op, ...]:
    """role/next_tile_cta.cu and next_tile_pair.cu: what ends every role's tile."""
    if not _answers(plan):
        return ()
    return (
        Wait("clc_full", CLC), ClcQuery(answer()), Fence(), Arrive("clc_empty", CLC, _ctas(plan, "leader"), per="warp"),
        Advance("clc"),
    )  # fmt: skip


def scheduler(plan: GemmPlan) -> tuple[Op, ...]:
    """role/scheduler.cu with request_cta.cu or request_pair.cu."""
    both = _ctas(plan, "all")
    return (
        _tile(
            Wait("clc_empty", CLC, 1),
            Arrive("clc_full", CLC, both, expect=_constant(plan, "CLC_BYTES", 0)),
            ClcRequest(answer(both), "clc_full", CLC),
            *next_tile(plan),
        ),
    )


def producer(plan: GemmPlan, announces: bool = True) -> tuple[Op, ...]:
    """role/producer.cu; of a pair only the first CTA announces. Then role/producer_drain.cu: a commit may not signal a
    CTA that has left."""
    announced = (announce(plan, RING),) if announces else ()
    return (
        _tile(_k_loop(Wait("empty", RING, 1), *announced, *loads(plan, RING), Advance("ring")), *next_tile(plan)),
        Loop("drain", plan.stages, (Wait("empty", RING, 1), Advance("ring"))),
    )


def issuer(plan: GemmPlan, consumer: int) -> tuple[Op, ...]:
    """role/mma.cu."""
    whole = _ctas(plan, "pair")
    return (
        _tile(
            Wait(_named("acc_empty", consumer, plan), ACC, 1),
            _k_loop(Wait("full", RING), *copy_scales(plan, RING, consumer), multiply(plan, RING, consumer),
                    Commit("empty", RING, whole), Advance("ring")),
            Commit(_named("acc_full", consumer, plan), ACC, whole),
            Advance("acc"),
            *next_tile(plan),
        ),
    )  # fmt: skip


def epilogue(plan: GemmPlan, consumer: int) -> tuple[Op, ...]:
    """role/epilogue.cu."""
    return (
        _tile(Wait(_named("acc_full", consumer, plan), ACC), *store(plan, consumer), Advance("acc"), *next_tile(plan)),
        *drain(plan),
    )


def _specialized(plan: GemmPlan) -> tuple[Role, ...]:
    pair = plan.cta_group > 1
    meet = ClusterBarrier() if pair else CtaBarrier()
    arrive, leave = (meet, meet) if pair else (meet,), (meet,)
    columns = (plan.tmem.allocated, _ctas(plan, "pair"))
    allocate, free = (TmemAlloc(*columns), TmemRelinquish()), (TmemDealloc(*columns),)
    first, second = ((0,), (1,)) if pair else (None, None)
    made = []
    for c in range(_consumers(plan)):
        before = (Init(), *arrive) if c == 0 else arrive  # thread 0 is in the first epilogue warpgroup
        made.append(Role(_named("epilogue", c, plan), 4, epilogue(plan, c), before, leave))
    for c in range(_consumers(plan)):
        before, after = ((*arrive[:-1], *allocate, meet), (meet, *free)) if c == 0 else (arrive, leave)
        made.append(Role(_named("mma", c, plan), 1, issuer(plan, c), before, after, ctas=first))
        if pair:
            made.append(Role(_named("peer", c, plan), 1, (), before, after, ctas=second))
    made.append(Role("producer", 1, producer(plan), arrive, leave, ctas=first))
    if pair:
        made.append(Role("producer of the peer", 1, producer(plan, announces=False), arrive, leave, ctas=second))
    if _answers(plan):
        made.append(Role("scheduler", 1, scheduler(plan), arrive, leave, ctas=first))
        if pair:
            made.append(Role("scheduler of the peer", 1, (), arrive, leave, ctas=second))
    idle = next((r.warps for r in plan.roles if r.name == "idle"), 0)
    if idle:
        made.append(Role("idle", idle, (), arrive, leave))
    return tuple(made)
