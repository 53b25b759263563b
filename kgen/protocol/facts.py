"""What must hold of a plan before anything runs: registers, shared memory, tensor maps, descriptors, shapes, launch.

The numbers are the hardware's and the driver's, written down here once more and apart from the planner, so that a
mistake there is found here. Sources: PTX ISA (setmaxnreg, wgmma shapes and matrix descriptors, TMA swizzle modes), CUDA
Driver API (cuTensorMapEncodeTiled), CUDA C++ Programming Guide (compute capabilities).
"""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.common import GemmPlan
from kgen.protocol import facts_sm100a
from kgen.protocol.fact import Broken, constant, register_split, stage_tile

SWIZZLE = 128  # bytes of a swizzled row
PATTERN = 1024  # bytes after which the swizzle starts anew
DESCRIPTOR_BITS = 14  # of an address in units of 16 bytes
ROW_GROUP_STRIDE = 1024  # bytes from eight rows to the next eight, as templates/ptx/wgmma.cu has it
MAX_BOX = 256
WGMMA_K_BYTES = 32
REGISTER_FILE, SMEM_PER_SM, SMEM_PER_CTA, SMEM_RESERVED = 65_536, 233_472, 232_448, 1_024  # compute capability 9.0
SCALES = ("sfa", "sfb")
TILES = ("a", "b", "d")  # regions that TMA and wgmma address in swizzled rows


def _registers(plan: GemmPlan) -> Iterator[Broken]:
    yield from register_split(plan)
    accumulators = plan.mma_shape[1] // 2 * constant(plan, "M_BLOCKS", 1)
    consumer = plan.roles[0]
    have = consumer.registers or plan.launch.launch_registers
    if accumulators >= have:
        yield Broken("registers", f"{accumulators} accumulators per thread; a consumer has {have}", "a smaller tile")


def _shared_memory(plan: GemmPlan) -> Iterator[Broken]:
    # Every region lives as long as the kernel: the ring while it runs, boxes until the last store has read, barriers
    # until the last signal. So no two may share a byte.
    end, before = 0, ""
    for region in sorted(plan.smem.regions, key=lambda r: r.offset):
        if region.offset < end:
            yield Broken("shared memory", f"{region.name} at {region.offset:,} overlaps {before}, which ends at "
                         f"{end:,}")  # fmt: skip
        align = PATTERN if region.name in TILES else 8
        if region.offset % align:
            yield Broken("shared memory", f"{region.name} at {region.offset:,} is not on a multiple of {align}")
        if region.name in TILES and stage_tile(plan, region) % PATTERN:
            yield Broken("shared memory", f"a stage of {region.name} has {stage_tile(plan, region):,} B, no whole "
                         f"{PATTERN}-byte swizzle patterns")  # fmt: skip
        end, before = region.offset + region.bytes, region.name
    by_name = {r.name: r for r in plan.smem.regions}
    for barrier in plan.barriers:
        if by_name[barrier.name].bytes < 8 * barrier.depth:
            yield Broken("shared memory", f"{barrier.name} has {by_name[barrier.name].bytes} B for {barrier.depth} "
                         "mbarriers")  # fmt: skip
    if end > plan.launch.smem_bytes or plan.launch.smem_bytes > SMEM_PER_CTA:
        yield Broken("shared memory", f"{end:,} B used, {plan.launch.smem_bytes:,} asked for, {SMEM_PER_CTA:,} "
                     "allowed")  # fmt: skip
    resident = plan.launch.ctas_per_sm * (plan.launch.smem_bytes + SMEM_RESERVED)
    if resident > SMEM_PER_SM:
        yield Broken("shared memory", f"{plan.launch.ctas_per_sm} CTAs take {resident:,} B; an SM has {SMEM_PER_SM:,}")


def _tensor_maps(plan: GemmPlan) -> Iterator[Broken]:
    for m in plan.tensor_maps:
        inner = m.box_columns * m.element_bytes
        if not (1 <= m.box_rows <= MAX_BOX and 1 <= m.box_columns <= MAX_BOX):
            yield Broken("tensor maps", f"{m.name} moves boxes of {m.box_rows} x {m.box_columns}; at most {MAX_BOX} "
                         "each")  # fmt: skip
        if inner % 16:
            yield Broken("tensor maps", f"{m.name}: rows of {inner} B in shared memory are no multiple of 16")
        if m.operand in SCALES:  # not swizzled
            continue
        if inner > SWIZZLE:
            yield Broken("tensor maps", f"{m.name}: rows of {inner} B exceed the {SWIZZLE}-byte swizzle")
        if m.operand != "d" and m.box_rows % 8:
            yield Broken("tensor maps", f"{m.name}: {m.box_rows} rows are no whole 8-row swizzle pattern")


def _bytes(plan: GemmPlan) -> Iterator[Broken]:
    boxes = {m.operand: m.box_bytes for m in plan.tensor_maps}
    for pipe in plan.pipelines:
        for d in pipe.full.deliveries:
            if d.bytes_each != boxes.get(d.operand):
                yield Broken("bytes", f"{pipe.full.name} counts {d.bytes_each:,} B for a box of {d.operand.upper()}; "
                             f"the tensor map moves {boxes.get(d.operand):,}")  # fmt: skip
        tiles = sum(stage_tile(plan, r) for r in plan.smem.regions if r.name in pipe.buffers)
        if pipe.full.tx_bytes != tiles:
            yield Broken("bytes", f"{pipe.full.name} waits for {pipe.full.tx_bytes:,} B; a stage holds {tiles:,}")
        if pipe.full.tx_bytes != constant(plan, "STAGE_BYTES"):
            yield Broken("bytes", f"STAGE_BYTES is {constant(plan, 'STAGE_BYTES'):,}; {pipe.full.tx_bytes:,} are "
                         "delivered")  # fmt: skip
        if pipe.empty and pipe.empty.arrivals != constant(plan, "EMPTY_ARRIVALS"):
            yield Broken("bytes", f"EMPTY_ARRIVALS is {constant(plan, 'EMPTY_ARRIVALS')}; {pipe.empty.arrivals} "
                         "arrive")  # fmt: skip


def _descriptors(plan: GemmPlan) -> Iterator[Broken]:
    row = plan.cta_tile[2] * plan.input.bytes // plan.input.packed
    if plan.tmem and plan.layout != ("k", "k"):
        yield from facts_sm100a.transposed(plan)
    if row != SWIZZLE:
        yield Broken("descriptors", f"rows of {row} B under a {SWIZZLE}-byte swizzle")
    if 8 * row != ROW_GROUP_STRIDE:
        yield Broken("descriptors", f"eight rows are {8 * row} B; the descriptor's stride is {ROW_GROUP_STRIDE}")
    if row % WGMMA_K_BYTES:
        yield Broken("descriptors", f"a row of {row} B is no whole number of {WGMMA_K_BYTES}-byte wgmma steps")
    last = max((r.offset + r.bytes for r in plan.smem.regions if r.name in ("a", "b")), default=0)
    if last > 16 << DESCRIPTOR_BITS:
        yield Broken("descriptors", f"operands end at {last:,}; a descriptor reaches {16 << DESCRIPTOR_BITS:,}")


def _shapes(plan: GemmPlan) -> Iterator[Broken]:
    n, rows = plan.mma_shape[1], plan.cta_tile[0] // max(1, constant(plan, "NUM_CONSUMERS", 1))
    if n % 8 or not 8 <= n <= 256:
        yield Broken("wgmma shape", f"n = {n}; a multiple of 8 from 8 to 256")
    if n != plan.cta_tile[1]:
        yield Broken("wgmma shape", f"one wgmma spans {n} columns of {plan.cta_tile[1]}")
    if rows % 64 or rows // 64 != constant(plan, "M_BLOCKS"):
        yield Broken("wgmma shape", f"{rows} rows per warpgroup in {constant(plan, 'M_BLOCKS')} blocks of 64")
    multiplier = plan.roles[0]
    if multiplier.warps % 4 or multiplier.first_warp % 4:
        yield Broken("wgmma shape", f"{multiplier.name} is no whole aligned warpgroup of 4 warps")
    if plan.input.bytes != 2:
        yield Broken("wgmma shape", f"k = 16 is that of 16-bit operands, not of {plan.input.name}")


def _launch(plan: GemmPlan) -> Iterator[Broken]:
    threads, cluster = plan.launch.threads, plan.launch.cluster_size
    if threads % 32 or not 32 <= threads <= 1024:
        yield Broken("launch", f"{threads} threads; whole warps, at most 1,024")
    taken = sum(r.threads for r in plan.roles)
    if taken != threads:
        yield Broken("launch", f"roles have {taken} threads, the CTA {threads}")
    if not 1 <= cluster <= 8:
        yield Broken("launch", f"clusters of {cluster}; at most 8 are portable")
    if plan.ctas is not None and plan.ctas % cluster:
        yield Broken("launch", f"{plan.ctas} CTAs are no whole clusters of {cluster}")


_COMMON = {
    "shared memory": _shared_memory, "tensor maps": _tensor_maps, "descriptors": _descriptors, "launch": _launch,
}  # fmt: skip
_BY_ARCH = {
    "sm_90a": {"registers": _registers, "bytes": _bytes, "wgmma shape": _shapes, **_COMMON},
    "sm_100a": {
        "registers": facts_sm100a.registers, "bytes": facts_sm100a.counts, "tcgen05 shape": facts_sm100a.instruction,
        "tensor memory": facts_sm100a.tensor_memory, "scales": facts_sm100a.scales, **_COMMON,
    },
}  # fmt: skip
FACTS = tuple(dict.fromkeys(fact for checks in _BY_ARCH.values() for fact in checks))


def facts_of(plan: GemmPlan) -> tuple[str, ...]:
    """The names of the facts that are checked of this plan."""
    return tuple(_BY_ARCH[plan.arch.name])


def broken_facts(plan: GemmPlan) -> list[Broken]:
    """Every fact that fails, in order; empty for a plan that may run."""
    return [b for check in _BY_ARCH[plan.arch.name].values() for b in check(plan)]
