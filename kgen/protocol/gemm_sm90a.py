"""The protocol of a planned Hopper GEMM.

Each function here says what one template says: `producer` is role/producer.cu with its fill, `consumer` is
role/consumer.cu, `thread_loop`, `one_stage` and `ring_loop` the main loops of one warpgroup, `store` store/tma.cu. A
test extracts the calls from the rendered kernels and compares.
"""

from __future__ import annotations

from kgen.plan.common import GemmPlan
from kgen.plan.resources import Barrier
from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    At,
    BarrierArray,
    Buffer,
    ClusterBarrier,
    CommitStores,
    Copy,
    CtaBarrier,
    Fence,
    Init,
    Loop,
    Op,
    Program,
    Read,
    Ref,
    Ring,
    Role,
    Wait,
    WaitGroup,
    WaitStores,
    When,
    Write,
)

RING = At("ring")
PREVIOUS = At("ring", -1)
ACC = Ref("acc", tag=("tile",))
K, TILES = "k_tiles", "tiles"


def program_of(plan: GemmPlan) -> Program:
    """The protocol of a plan."""
    specialized = len(plan.roles) > 1
    cluster = plan.launch.cluster_size
    operands = plan.pipelines[0] if plan.pipelines else None
    meet = ClusterBarrier() if cluster > 1 else CtaBarrier()
    before = (Init(), meet) if plan.barriers else ()
    leave = (meet,) if cluster > 1 else ()
    roles = _specialized(plan, meet, leave) if specialized else _unified(plan, before)
    staging = _staging(plan)
    boxes = [Buffer("d", staging, private=True)] if staging else []
    stages = operands.depth if operands else 1
    writers = 1 if operands else 4
    return Program(
        name=plan.name,
        cluster=cluster,
        roles=roles,
        barriers=tuple(BarrierArray(b.name, b.depth, b.arrivals, " + ".join(map(str, b.arrivers)))
                       for b in plan.barriers),
        buffers=(
            Buffer("a", stages, _parts(plan, "a") * writers),
            Buffer("b", stages, _parts(plan, "b") * writers),
            Buffer("acc", private=True, space="registers"),
            *boxes,
        ),
        rings=(Ring("ring", stages), Ring("fill", stages), *([Ring("turn", staging)] if staging else [])),
        least={K: 1},
        most={K: plan.k_tiles} if plan.k_tiles else {},
        why="the launcher refuses k < 1",
    )  # fmt: skip


def _parts(plan: GemmPlan, operand: str) -> int:
    """Slices of an operand that different CTAs deliver."""
    if not plan.pipelines:
        return 1
    return next(d.copies for d in plan.pipelines[0].full.deliveries if d.operand == operand)


def _staging(plan: GemmPlan) -> int:
    region = next((c for group in plan.constants for c in group if c.name == "STAGING"), None)
    return region.value if region else 0


def _boxes(plan: GemmPlan, staging: int) -> int:
    """Store boxes per tile and warp. The boxes are the warp's own, so that a lap more or less of their ring changes
    nothing for anybody else: as many are checked as leave the same box next, with two laps at most."""
    box = next(t for t in plan.tensor_maps if t.operand == "d")
    rows = next(c.value for group in plan.constants for c in group if c.name == "M_BLOCKS")
    boxes = rows * plan.out_columns // box.box_columns
    return min(boxes, 2 * staging + boxes % staging)


def store(plan: GemmPlan) -> tuple[Op, ...]:
    """How the accumulators leave, per warp."""
    staging = _staging(plan)
    if not staging:
        return (Read(ACC),)
    box = Ref("d", At("turn"), tag=("tile", "box"))
    return (
        Loop("box", _boxes(plan, staging), (
            WaitStores(staging - 1), Read(ACC), Write(box), Fence(), AsyncStore(box), CommitStores(), Advance("turn"),
        )),
    )  # fmt: skip


def drain(plan: GemmPlan) -> tuple[Op, ...]:
    return (WaitStores(0),) if _staging(plan) else ()


def _tile(*body: Op) -> Loop:
    return Loop("tile", TILES, body)


def _k_loop(*body: Op) -> Loop:
    return Loop("k", K, body)


def _multiply(at: At | None) -> AsyncMma:
    return AsyncMma((Ref("a", at), Ref("b", at)), ACC)


def loads(plan: GemmPlan, at: At, ahead: int = 0, loop: str = "k") -> tuple[Op, ...]:
    """The copies of one k tile, the shared operand first; its slice goes to every CTA."""
    copies = sorted(plan.pipelines[0].full.deliveries, key=lambda d: -d.copies)
    made = []
    for d in copies:
        shared = d.copies > 1
        part, ctas = ("rank", "all") if shared else (None, "self")
        into = Ref(d.operand, at, part, ("tile", loop), ahead, ctas)
        made.append(AsyncLoad(into, d.bytes_each, "full", at))
    return tuple(made)


def announce(full: Barrier, at: At) -> Arrive:
    return Arrive("full", at, expect=full.tx_bytes)


# One warpgroup


def thread_loop(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/threads_loop.cu and threads_once.cu."""
    last = () if plan.k_tiles else (CtaBarrier(),)
    return (
        _k_loop(Write(Ref("a", part="warp")), Write(Ref("b", part="warp")), Fence(), CtaBarrier(), _multiply(None),
                WaitGroup(0), *last),
    )  # fmt: skip


def one_stage(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/tma_loop.cu."""
    full = plan.pipelines[0].full
    return (
        _k_loop(announce(full, RING), *loads(plan, RING), Wait("full", RING, full.first_parity), _multiply(RING),
                WaitGroup(0), CtaBarrier(), Advance("ring")),
    )  # fmt: skip


def ring_loop(plan: GemmPlan) -> tuple[Op, ...]:
    """mainloop/tma_ring.cu."""
    full, stages = plan.pipelines[0].full, plan.stages
    fill = At("fill")
    prologue = (
        Copy("fill", "ring"),
        Loop("fill", lambda e: min(e[K], stages), (announce(full, fill), *loads(plan, fill, loop="fill"),
                                                   Advance("fill"))),
    )  # fmt: skip
    lap = At("ring", stages - 1)
    refill = When(
        "k > 0 and a k tile one lap ahead exists",
        lambda e: e["k"] > 0 and e["k"] + stages - 1 < e[K],
        (announce(full, lap), *loads(plan, lap, stages - 1)),
    )
    return (
        *prologue,
        _k_loop(Wait("full", RING, full.first_parity), _multiply(RING), WaitGroup(1), CtaBarrier(), refill,
                Advance("ring")),
        WaitGroup(0),
        CtaBarrier(),
    )  # fmt: skip


def _unified(plan: GemmPlan, before: tuple[Op, ...]) -> tuple[Role, ...]:
    tma_loop = ring_loop if plan.stages > 1 else one_stage
    loop = tma_loop(plan) if plan.pipelines else thread_loop(plan)
    role = plan.roles[0]
    return (Role(role.name, role.warps, (_tile(*loop, *store(plan)),), before, drain(plan)),)


# Producer and consumers


def producer(plan: GemmPlan) -> tuple[Op, ...]:
    """role/producer.cu."""
    ring = plan.pipelines[0]
    return (
        _tile(_k_loop(Wait("empty", RING, ring.empty.first_parity), announce(ring.full, RING), *loads(plan, RING),
                      Advance("ring"))),
    )  # fmt: skip


def release(plan: GemmPlan) -> Arrive:
    return Arrive("empty", PREVIOUS, "all" if plan.launch.cluster_size > 1 else "self", per="warp")


def consumer(plan: GemmPlan) -> tuple[Op, ...]:
    """role/consumer.cu."""
    ring = plan.pipelines[0]
    # `previous` is the stage of the k tile before, so that releases trail the multiplies by one.
    return (
        _tile(
            _k_loop(
                Wait("full", RING, ring.full.first_parity), _multiply(RING), WaitGroup(1),
                When("k > 0", lambda e: e["k"] > 0, (release(plan),)), Advance("ring"),
            ),
            WaitGroup(0),
            release(plan),
            *store(plan),
        ),
        *drain(plan),
    )  # fmt: skip


def _specialized(plan: GemmPlan, meet: Op, leave: tuple[Op, ...]) -> tuple[Role, ...]:
    made = []
    by_name = {r.name: r for r in plan.roles}
    groups = by_name["consumer"].warps // 4
    for i in range(groups):
        name = f"consumer {i}" if groups > 1 else "consumer"
        # Thread 0, which initialises the barriers, is in the first consumer.
        before = (Init(), meet) if i == 0 else (meet,)
        made.append(Role(name, 4, consumer(plan), before, leave))
    made.append(Role("producer", 1, producer(plan), (meet,), leave))
    idle = by_name["producer"].warps - 1
    if idle:
        made.append(Role("idle", idle, (), (meet,), leave))
    return tuple(made)
