"""Shared memory of one CTA."""

from __future__ import annotations

from kgen.plan.gemm_sm90a.geometry import ROWS_PER_WARP, Geometry
from kgen.plan.geometry import PATTERN_BYTES, SWIZZLE_BYTES
from kgen.plan.resources import SmemMap
from kgen.plan.smem import in_order


def smem_map(g: Geometry, stages: int) -> SmemMap:
    """The map with a ring of `stages`: operands first, as their swizzle pattern wants alignment; barriers last."""
    k = g.spec.tile.k
    ring = ("STAGES",) if g.tma else ()
    wanted = [
        ("a", "Input", (*ring, "BLOCK_M * BLOCK_K"), stages * g.block_m * k * g.input.bytes, "k tiles of A"),
        ("b", "Input", (*ring, "BLOCK_N * BLOCK_K"), stages * g.block_n * k * g.input.bytes, "k tiles of B"),
    ]
    if g.staged:
        warps = 4 * g.consumers
        each = ROWS_PER_WARP * SWIZZLE_BYTES
        store_warps = "4 * NUM_CONSUMERS" if g.specialized else "4"
        wanted.append(
            (
                "d",
                "Output",
                (store_warps, "STAGING", "STORE_ROWS * STORE_COLUMNS"),
                warps * g.spec.epilogue.staging * each,
                "D on its way out, private to each warp",
            )
        )
    if g.tma:
        wanted.append(("full", "uint64_t", ("STAGES",), 8 * stages, "k tile has landed"))
    if g.specialized:
        wanted.append(("empty", "uint64_t", ("STAGES",), 8 * stages, "k tile has been read"))
    return in_order(wanted, PATTERN_BYTES)
