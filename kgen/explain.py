"""A plan in numbers a person can check: what it occupies, who waits for whom, and what bounds its speed.

Pure: plan -> Explanation. Sizes in bytes, rates in FLOP/s and byte/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kgen.explain_sm100a import Pair, Tmem, pair, tmem
from kgen.expression import PLAIN, written
from kgen.plan.common import GemmPlan
from kgen.plan.epilogue import Argument
from kgen.plan.resources import Arriver, Barrier


@dataclass(frozen=True)
class RegionLine:
    """One member of shared memory."""

    name: str
    offset: int
    bytes: int
    why: str


@dataclass(frozen=True)
class Smem:
    """Shared memory of a CTA: what it uses, what it asks for, what a CTA may have, and what stays free."""

    regions: tuple[RegionLine, ...]
    used: int
    requested: int
    limit: int
    free: int


@dataclass(frozen=True)
class BarrierLine:
    """One array of mbarriers. `arrivals_from` and `tx_from` are the arithmetic behind the counts."""

    name: str
    depth: int
    arrivals: int
    arrivals_from: str
    tx_bytes: int
    tx_from: str
    waiter: str
    first_parity: int
    why: str


@dataclass(frozen=True)
class RoleLine:
    """Warps that run one program. `registers` is per thread: after setmaxnreg, or as launched."""

    name: str
    warps: str
    threads: int
    registers: int
    does: str


@dataclass(frozen=True)
class Registers:
    """Register file of one SM: `used` at most by all its CTAs, out of `limit`; threads are given multiples of 8.

    `accumulators_in` says where the sums live: they are most of a thread's registers, or none of them.
    """

    per_cta: int
    arithmetic: str
    ctas_per_sm: int
    used: int
    limit: int
    accumulators_in: str


@dataclass(frozen=True)
class MapLine:
    """One TMA descriptor: what it reads or writes, and in which boxes."""

    name: str
    matrix: str
    row_stride: str
    box: str
    box_bytes: int


@dataclass(frozen=True)
class LaunchLine:
    """The launch for the spec's problem."""

    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    threads: int
    ctas: int
    smem_bytes: int


@dataclass(frozen=True)
class Waves:
    """How the tiles of D fall on the card. A slot is room for one cluster of `slot_ctas` CTAs (or a lone one).

    `last_wave` is the busy part of the slots in the last wave, `balance` that over all waves, `useful` the
    part of the computed tiles that lies inside D.
    """

    problem: tuple[int, int, int]
    tile: tuple[int, int]
    tiles: int
    tiles_m: int
    tiles_n: int
    slots: int
    slot_ctas: int
    waves: int
    last_wave: float
    balance: float
    useful: float


@dataclass(frozen=True)
class Roofline:
    """What bounds the speed. `problem_intensity` counts each matrix once from memory, `tile_intensity` what a
    CTA itself loads into shared memory; `tile_bandwidth` is what L2 must then deliver for all SMs at peak."""

    flops: float
    bytes: int
    problem_intensity: float
    ridge: float
    bound: str
    ceiling: float
    ceiling_with_waves: float
    tile_intensity: float
    tile_bandwidth: float


@dataclass(frozen=True)
class EpilogueLine:
    """One step between accumulator and D: what it does to an element and what it reads or writes, and where from."""

    name: str
    does: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """All sections of `kgen explain`."""

    kernel: str
    name: str
    arch: str
    product: str
    smem: Smem
    tmem: Tmem | None  # None where accumulators are registers
    pair: Pair | None  # None where a CTA multiplies alone
    barriers: tuple[BarrierLine, ...]
    roles: tuple[RoleLine, ...]
    registers: Registers
    tensor_maps: tuple[MapLine, ...]
    launch: LaunchLine
    waves: Waves
    roofline: Roofline
    epilogue: tuple[EpilogueLine, ...] = ()

    def to_json(self) -> dict:
        """Plain data, field for field."""
        return asdict(self)


def explain(plan: GemmPlan) -> Explanation:
    """Every section, for the plan's own problem and its architecture's reference card."""
    waves = _waves(plan)
    return Explanation(
        kernel=plan.family,
        name=plan.name,
        arch=plan.arch.name,
        product=plan.arch.product,
        smem=_smem(plan),
        tmem=tmem(plan),
        pair=pair(plan),
        barriers=tuple(_barrier(b) for b in plan.barriers),
        roles=_roles(plan),
        registers=_registers(plan),
        tensor_maps=tuple(
            MapLine(
                t.name,
                f"{t.operand.upper()}[{t.rows}, {t.columns}]",
                t.stride,
                f"{t.box_rows} x {t.box_columns}",
                t.box_bytes,
            )
            for t in plan.tensor_maps
        ),
        launch=_launch(plan, waves),
        waves=waves,
        roofline=_roofline(plan, waves),
        epilogue=tuple(_epilogue(plan)),
    )


def _epilogue(plan: GemmPlan) -> Iterator[EpilogueLine]:
    if plan.finish is None:
        return
    for s in plan.finish.steps:
        written_as = written(s.tree, {n: n for n in s.tree.names()}, PLAIN)
        yield EpilogueLine(s.op, f"x = {written_as}", tuple(map(_argument, s.names.values())))
    for r in plan.finish.reductions:
        how = {"sum": "sum", "max_abs": "largest absolute value"}[r.how]
        order = "; the order of additions is left to chance" if r.how == "sum" else ""
        yield EpilogueLine(r.op, f"{how} of each {r.along} of D before rounding{order}", (_argument(r.argument),))


def _elements(a: Argument, m: int, n: int) -> int:
    columns = n if a.columns == "n" else n // 2
    return {"scalar": 0, "row": m, "column": columns, "matrix": m * columns}[a.broadcast]


def _argument(a: Argument) -> str:
    if a.broadcast == "scalar":
        return f"{a.name}: scalar"
    return f"{a.name}{a.extents} {a.dtype.name}: per " + ("element" if a.broadcast == "matrix" else a.broadcast)


def _smem(plan: GemmPlan) -> Smem:
    arch, residents = plan.arch, plan.launch.ctas_per_sm
    limit = min(arch.smem_per_cta, arch.smem_per_sm // residents - arch.smem_reserved_per_cta)
    regions = tuple(RegionLine(r.name, r.offset, r.bytes, r.why) for r in plan.smem.regions)
    return Smem(regions, plan.smem.bytes, plan.launch.smem_bytes, limit, limit - plan.smem.bytes)


def _arriver(a: Arriver) -> str:
    unit = "elected thread" if a.per == "elected" else a.per
    whose = f" x {a.ctas} CTAs" if a.ctas > 1 else ""
    return f"{a.groups} {unit}{'s' if a.groups > 1 else ''} of {a.role}{whose}"


def _barrier(b: Barrier) -> BarrierLine:
    arrivals = " + ".join(map(_arriver, b.arrivers))
    tx = " + ".join(f"{d.operand.upper()}: {d.copies} x {d.bytes_each:,}" for d in b.deliveries)
    return BarrierLine(b.name, b.depth, b.arrivals, arrivals, b.tx_bytes, tx, b.waiter, b.first_parity, b.why)


def _roles(plan: GemmPlan) -> tuple[RoleLine, ...]:
    return tuple(
        RoleLine(
            r.name,
            r.warp_numbers,
            r.threads,
            r.registers or plan.launch.launch_registers,
            r.does,
        )
        for r in plan.roles
    )


def _registers(plan: GemmPlan) -> Registers:
    roles, residents = _roles(plan), plan.launch.ctas_per_sm
    given = [(r.threads, -(-r.registers // 8) * 8) for r in roles]
    per_cta = sum(threads * registers for threads, registers in given)
    arithmetic = " + ".join(f"{threads} x {registers}" for threads, registers in given)
    where = "registers" if plan.tmem is None else "tensor memory"
    return Registers(per_cta, arithmetic, residents, per_cta * residents, plan.arch.registers_per_sm, where)


def _waves(plan: GemmPlan) -> Waves:
    m, n, _ = plan.problem
    tile_m, tile_n = plan.cluster_tile
    tiles_m, tiles_n = math.ceil(m / tile_m), math.ceil(n / tile_n)
    tiles = tiles_m * tiles_n
    work = tiles * min(plan.split_k, math.ceil(plan.problem[2] / plan.cta_tile[2]))  # parts of K are handed out singly
    resident = plan.arch.sm_count * plan.launch.ctas_per_sm
    slots = 1 if plan.one_tile else min(resident, plan.ctas or resident) // plan.launch.cluster_size
    waves = math.ceil(work / slots)
    return Waves(
        problem=plan.problem,
        tile=plan.cluster_tile,
        tiles=tiles,
        tiles_m=tiles_m,
        tiles_n=tiles_n,
        slots=slots,
        slot_ctas=plan.launch.cluster_size,
        waves=waves,
        last_wave=(work - (waves - 1) * slots) / slots,
        balance=work / (waves * slots),
        useful=m * n / (tiles * tile_m * tile_n),
    )


def _launch(plan: GemmPlan, waves: Waves) -> LaunchLine:
    x, y, z = plan.launch.cluster
    if plan.one_tile:
        grid = (1, 1, 1)
    elif plan.schedule == "clc":
        grid = (waves.tiles * plan.launch.cluster_size, 1, 1)
    elif plan.schedule == "grid":
        grid = (waves.tiles_m * x, waves.tiles_n * y, z)
    else:
        # Without a fixed count the launcher fills the card in the machine; here the reference card.
        most = (plan.ctas or plan.arch.sm_count * plan.launch.ctas_per_sm) // plan.launch.cluster_size
        work = waves.tiles * min(plan.split_k, math.ceil(plan.problem[2] / plan.cta_tile[2]))
        grid = (min(work, most) * plan.launch.cluster_size, 1, 1)
    return LaunchLine(grid, plan.launch.cluster, plan.launch.threads, math.prod(grid), plan.launch.smem_bytes)


def _roofline(plan: GemmPlan, waves: Waves) -> Roofline:
    (m, n, k), arch = plan.problem, plan.arch
    flops = 2.0 * m * n * k
    moved = math.ceil(plan.operand_bytes(m + n, k) + plan.scale_bytes(m + n, k))
    moved += m * (n // 2 if plan.pairs else n) * plan.output.bytes
    if plan.finish:
        moved += sum(_elements(a, m, n) * a.dtype.bytes for a in plan.finish.arguments)
    intensity, ridge = flops / moved, plan.peak_flops / arch.memory_bandwidth
    ceiling = min(plan.peak_flops, intensity * arch.memory_bandwidth)
    # What does not fill the card, or lies outside of D, takes part of the compute peak; memory does not mind.
    compute = plan.peak_flops * waves.balance * waves.useful
    if plan.one_tile:
        compute /= arch.sm_count
    block_m, block_n, block_k = plan.cta_tile
    cluster_m, cluster_n = (plan.cluster_tile[0] // block_m, plan.cluster_tile[1] // block_n)
    # CTAs stacked along M share B (by multicast, or as a pair whose tensor cores read both halves), CTAs side by side
    # along N share A: each loads its part of it. Of B's scales each loads all.
    loaded = plan.operand_bytes(block_m / cluster_n + block_n / cluster_m, block_k)
    loaded += plan.scale_bytes(block_m + block_n, block_k)
    tile_intensity = 2.0 * block_m * block_n * block_k / loaded
    return Roofline(
        flops=flops,
        bytes=moved,
        problem_intensity=intensity,
        ridge=ridge,
        bound="compute" if intensity >= ridge else "memory",
        ceiling=ceiling,
        ceiling_with_waves=min(ceiling, compute),
        tile_intensity=tile_intensity,
        tile_bandwidth=plan.peak_flops / tile_intensity,
    )
