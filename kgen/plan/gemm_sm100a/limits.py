"""What the hardware cannot do, each with the arithmetic and the nearest way out."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.errors import Refusal
from kgen.plan.gemm_sm100a.geometry import Geometry
from kgen.plan.geometry import SWIZZLE_BYTES, WARPGROUP
from kgen.plan.resources import TensorMemory

# Registers an epilogue thread needs beside the columns it holds (seen in ptxas reports).
REGISTER_OVERHEAD = 40


def shape_limits(g: Geometry) -> Iterator[Refusal]:
    """Tiles that no store box or instruction shape fits."""
    whole = g.store_columns if g.staged else g.chunk
    boxed = whole * (g.block_n // g.out_n)  # columns of the product that become a store box, or a chunk, of D
    if g.staged and g.block_n % boxed:
        near = [str(n) for n in (g.block_n - g.block_n % boxed, g.block_n + -g.block_n % boxed) if 0 < n <= 256]
        yield Refusal(
            "tile.n",
            f"{g.out_n} columns of {g.output.name} are no whole number of {SWIZZLE_BYTES}-byte store boxes "
            f"of {whole} columns",
            f"set tile.n: {' or '.join(near)}, or epilogue.store: direct",
        )
    elif g.block_n % boxed:
        yield Refusal(
            "tile.n",
            f"{g.block_n} columns make {g.out_n} of D, and a thread finishes {g.chunk} at a time",
            f"set tile.n: {g.block_n + -g.block_n % boxed}",
        )


def tmem_limits(g: Geometry, tmem: TensorMemory) -> Iterator[Refusal]:
    """More columns of tensor memory than an SM has."""
    have = g.arch.tmem_columns
    if tmem.used > have:
        # Columns of scales go with those of D, a 128-row atom of B at a time.
        fit = 128 if g.scales else have // g.acc_slots // 32 * 32
        scales = f" + {g.consumers} x {g.scale_columns} of scales" if g.scales else ""
        yield Refusal(
            "tile.n",
            f"{g.consumers} consumers x {g.accumulators} accumulators x {g.block_n} columns{scales} = {tmem.used} "
            f"columns of tensor memory; {g.arch.name} has {have}",
            f"set tile.n: {fit}, or fewer consumers or accumulators"
            if fit < g.block_n
            else "take fewer consumers or accumulators",
        )
    elif g.residents * tmem.allocated > have:
        yield Refusal(
            "schedule.ctas_per_sm",
            f"{g.residents} CTAs x {tmem.allocated} columns of tensor memory; an SM has {have}, so that one would wait "
            "for another to end",
            f"set ctas_per_sm: {have // tmem.allocated}, or a smaller tile.n",
        )


def register_limits(g: Geometry) -> Iterator[Refusal]:
    """Splits that exceed what the CTA launched with, shares too small to hold a chunk of an accumulator."""
    need, split = g.chunk + REGISTER_OVERHEAD, g.spec.warps.registers
    have, field = g.launch_registers, "schedule.ctas_per_sm"
    if split:
        have, field = split.epilogue, "warps.registers.epilogue"
        total = WARPGROUP * (split.control + g.consumers * split.epilogue)
        pool = g.threads * g.launch_registers
        if total > pool:
            fit = (pool // WARPGROUP - split.control) // g.consumers // 8 * 8
            yield Refusal(
                "warps.registers",
                f"{WARPGROUP} x ({split.control} + {g.consumers} x {split.epilogue}) = {total} registers; "
                f"{g.threads} threads launch with {pool}",
                f"set epilogue: {fit}" if fit >= need else "take fewer consumers or CTAs per SM",
            )
    if need > have:
        yield Refusal(
            field,
            f"a thread holds {g.chunk} columns and needs about {REGISTER_OVERHEAD} registers more; it has {have}",
            f"give it {-(-need // 8) * 8}" if split else "set fewer CTAs per SM",
        )
