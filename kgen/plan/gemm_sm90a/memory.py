"""Shared memory of one CTA."""

from __future__ import annotations

from kgen.plan.gemm_sm90a.geometry import PATTERN_BYTES, ROWS_PER_WARP, SWIZZLE_BYTES, Geometry
from kgen.plan.resources import SmemMap, SmemRegion


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
    regions, offset = [], 0
    for name, ctype, extents, size, why in wanted:
        regions.append(SmemRegion(name, ctype, extents, offset, size, why))
        offset += size
    return SmemMap(tuple(regions), PATTERN_BYTES)


def smem_request(g: Geometry, smem: SmemMap) -> int:
    """Dynamic shared memory asked for at launch: the storage, or as much as keeps further CTAs off the SM."""
    arch, residents = g.arch, g.spec.schedule.ctas_per_sm
    one_more = arch.smem_per_sm // (residents + 1) - arch.smem_reserved_per_cta
    exclude = (one_more // PATTERN_BYTES + 1) * PATTERN_BYTES
    return max(smem.bytes, exclude)
