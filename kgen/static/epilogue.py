"""One tile of D on its way out, in cycles of its SM, and how much of that keeps the tensor core waiting."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.plan.common import GemmPlan
from kgen.static.k_tile import LANES, KTile
from kgen.static.rates import Rates

LANES_PER_PARTITION = 32


@dataclass(frozen=True)
class Epilogue:
    """Cycles: reading tensor memory, writing the staging boxes, sending D to L2. `until_free` is when the accumulator
    may be overwritten, `exposed` what of it no MMA covers."""

    tmem: float
    staging: float
    out: float
    until_free: float
    exposed: float
    whole: float
    overlap: str


def epilogue(plan: GemmPlan, tile: KTile, mainloop: float, rates: Rates) -> Epilogue:
    """By roles and accumulators; `mainloop` is the time of the k loop, which a second accumulator puts above it."""
    rows, columns, _ = plan.cta_tile
    consumers, size = rows // LANES, rows * columns * plan.output.bytes
    staged = any(t.operand == "d" for t in plan.tensor_maps)
    # The consumers' warps share the four partitions, so that their reads take turns.
    tmem = consumers * columns * LANES_PER_PARTITION / rates.tmem_lanes
    staging = size / rates.smem_bytes if staged else 0.0
    out = size / rates.l2_bytes
    whole = tmem + (max(staging, out) if staged else out)
    if not any(r.name == "epilogue" for r in plan.roles):
        # One warpgroup does all in turn; what TMA stores runs on while the next tile is loaded.
        alone = tmem + staging if staged else whole
        return Epilogue(tmem, staging, out, alone, alone, whole, "none: one warpgroup does all in turn")
    # Released with the last chunk's read: all reads lie before it, and the staging of all chunks but that one.
    chunks = columns // plan.chunk
    until_free = tmem + (staging or out) * (chunks - 1) / chunks
    if plan.tmem is not None and len(plan.tmem.regions) > consumers:
        exposed, why = max(0.0, until_free - mainloop), "with the next tile, in another accumulator"
    elif consumers > 1:
        # Consumers take turns, so that the others still multiply their last k tile when the first one ends.
        exposed, why = max(0.0, until_free - tile.mma * (consumers - 1) / consumers), "the other's last k tile"
    else:
        exposed, why = until_free, "the last box and the stores, not the reads"
    return Epilogue(tmem, staging, out, until_free, exposed, whole, why)
