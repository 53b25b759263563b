"""What the hardware cannot do, each with the arithmetic and the nearest way out."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.errors import Refusal
from kgen.plan.gemm_sm90a.geometry import Geometry
from kgen.plan.geometry import SWIZZLE_BYTES, WARPGROUP

# Registers a consumer needs beside its accumulators: addresses, descriptors, loop state (seen in ptxas reports; with 32
# left beside 192 accumulators it serialises the wgmmas and spills).
REGISTER_OVERHEAD = 40
# A producer that walks tiles for a cluster spills with 24 registers.
CLUSTER_PRODUCER = 32
# ptxas refuses a wgmma whose accumulators and addresses exceed the registers at launch (C7602: 128 want 154).
WGMMA_OVERHEAD = 26
# Without setmaxnreg ptxas holds that many more beside wide accumulators where D is staged (128 and up spill with the 40
# alone; direct stores of them do not).
UNSPLIT_OVERHEAD, WIDE = 16, 128
MAX_BOX = 256  # rows of a TMA box (cuTensorMapEncodeTiled, boxDim)


def shape_limits(g: Geometry) -> Iterator[Refusal]:
    """Boxes and slices that the TMA engine cannot move."""
    if g.tma and g.block_m > MAX_BOX:
        yield Refusal(
            "tile.m",
            f"{g.consumers} consumers x {g.spec.tile.m} rows = {g.block_m} rows of A in one TMA box; "
            f"a box has at most {MAX_BOX}",
            f"set tile.m: {MAX_BOX // g.consumers // 64 * 64}",
        )
    boxed = g.store_columns * (g.block_n // g.out_n)  # columns of the product that one box takes
    if g.staged and g.block_n % boxed:
        down = g.block_n // boxed * boxed
        up = down + boxed
        near = [str(n) for n in (down, up) if 0 < n <= MAX_BOX]
        yield Refusal(
            "tile.n",
            f"{g.out_n} columns of {g.output.name} are no whole number of {SWIZZLE_BYTES}-byte store boxes "
            f"of {g.store_columns} columns",
            f"set tile.n: {' or '.join(near)}, or epilogue.store: direct",
        )
    rows, operand, field = (g.block_n, "B", "tile.n") if g.share_b else (g.block_m, "A", "tile.m")
    if g.cluster > 1 and rows % (8 * g.cluster):
        step = 8 * g.cluster
        yield Refusal(
            field,
            f"{rows} rows of {operand} split over {g.cluster} CTAs leave slices that are no whole 8-row "
            "swizzle pattern",
            f"nearest: {max(step, rows // step * step)}",
        )


def accumulators(g: Geometry) -> int:
    """Registers that a thread's part of its accumulators takes."""
    return g.spec.tile.m // 64 * g.spec.tile.n // 2


def overhead(g: Geometry) -> int:
    """Registers beside accumulators, before any epilogue."""
    more = g.specialized and not g.spec.warps.registers and g.staged and accumulators(g) >= WIDE
    return REGISTER_OVERHEAD + (UNSPLIT_OVERHEAD if more else 0)


def register_limits(g: Geometry) -> Iterator[Refusal]:
    """Accumulators that do not fit a thread, splits that exceed what the CTA launched with."""
    held = accumulators(g)
    need = held + overhead(g)
    split = g.spec.warps.registers
    have, whose = g.launch_registers, "warps.consumers"
    if split:
        total = WARPGROUP * (split.producer + g.consumers * split.consumer)
        pool = g.threads * g.launch_registers
        have, whose = split.consumer, "warps.registers.consumer"
        if g.cluster > 1 and g.spec.schedule.kind == "persistent" and split.producer < CLUSTER_PRODUCER:
            yield Refusal(
                "warps.registers.producer",
                f"a producer that walks the tiles of a cluster keeps more than {split.producer} registers in use",
                f"set producer: {CLUSTER_PRODUCER}",
            )
        if total > pool:
            fit = (pool // WARPGROUP - split.producer) // g.consumers // 8 * 8
            yield Refusal(
                "warps.registers",
                f"{WARPGROUP} x ({split.producer} + {g.consumers} x {split.consumer}) = {total} registers; "
                f"{g.threads} threads launch with {pool}",
                f"set consumer: {fit}" if fit >= need else "take fewer consumers or a smaller tile",
            )
    floor = g.spec.tile.n // 2 + WGMMA_OVERHEAD
    if split and floor > g.launch_registers:
        fit = (g.launch_registers - WGMMA_OVERHEAD) * 2 // 64 * 64
        yield Refusal(
            "tile.n",
            f"one wgmma of {g.spec.tile.n} columns names {g.spec.tile.n // 2} registers and ptxas wants "
            f"{floor} at launch, before setmaxnreg; {g.threads} threads x {g.spec.schedule.ctas_per_sm} CTAs "
            f"launch with {g.launch_registers}",
            f"set tile.n: {fit}, or fewer consumers or CTAs per SM",
        )
    elif need > min(have, g.arch.max_registers_per_thread + 1):
        fit = max(8, (min(have, 255) - overhead(g)) * 2 // (g.spec.tile.m // 64) // 64 * 64)
        yield Refusal(
            "tile.n",
            f"a {g.spec.tile.m}x{g.spec.tile.n} accumulator takes {held} registers per thread and "
            f"about {overhead(g)} more are needed; {whose} leaves {have}",
            f"set tile.n: {fit}, or tile.m: 64",
        )
