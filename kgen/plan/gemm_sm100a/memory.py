"""Shared memory and tensor memory of one CTA."""

from __future__ import annotations

from kgen.plan.gemm_sm100a.geometry import ANSWER_BYTES, ANSWERS, ROWS_PER_WARP, Geometry
from kgen.plan.geometry import PATTERN_BYTES, SWIZZLE_BYTES
from kgen.plan.resources import Scales, SmemMap, TensorMemory, TmemRegion
from kgen.plan.smem import in_order

MIN_COLUMNS = 32  # of an allocation


def smem_map(g: Geometry, stages: int) -> SmemMap:
    """The map with a ring of `stages`: operands first, as their swizzle pattern wants alignment; barriers last."""
    ring = ("STAGES",) if g.tma else ()
    b_rows = "B_SLICE" if g.group > 1 else "BLOCK_N"
    wanted = [
        ("a", "Input", (*ring, "BLOCK_M * BLOCK_K"), stages * g.block_m * SWIZZLE_BYTES, "k tiles of A"),
        ("b", "Input", (*ring, f"{b_rows} * BLOCK_K"), stages * g.b_rows * SWIZZLE_BYTES, "k tiles of B"),
    ]
    if g.staged:
        size = g.store_warps * g.spec.epilogue.staging * ROWS_PER_WARP * SWIZZLE_BYTES
        warps = "4 * NUM_CONSUMERS" if g.specialized else "4"
        box = f"STORE_ROWS * {g.box_extent}"
        wanted.append(("d", "Output", (warps, "STAGING", box), size, "D on its way out, private to each warp"))
    for operand, atoms in zip("ab", g.scale_atoms, strict=True):
        if atoms:  # behind what is swizzled: an atom need not start where a pattern does
            size, name = stages * atoms * Scales.ATOM_BYTES, operand.upper()
            wanted.append((f"sf{operand}", "uint8_t", ("STAGES", f"SF{name}_BYTES"), size, f"scales of {name}"))
    if g.clc:
        wanted.append(("clc", "uint64_t", ("CLC_SLOTS", "2"), ANSWER_BYTES * ANSWERS, "answers of launch control"))
    if g.tma:
        wanted.append(("full", "uint64_t", ("STAGES",), 8 * stages, "k tile has landed"))
        wanted.append(("empty", "uint64_t", ("STAGES",), 8 * stages, "k tile has been read"))
    slots = ("ACC_SLOTS",) if g.specialized else ("1",)
    wanted.append(("acc_full", "uint64_t", slots, 8 * g.acc_slots, "accumulator is complete"))
    if g.specialized:
        wanted.append(("acc_empty", "uint64_t", slots, 8 * g.acc_slots, "accumulator has been read"))
    if g.clc:
        wanted.append(("clc_full", "uint64_t", ("CLC_SLOTS",), 8 * ANSWERS, "answer has come"))
        wanted.append(("clc_empty", "uint64_t", ("CLC_SLOTS",), 8 * ANSWERS, "answer has been read by all"))
    wanted.append(("tmem", "uint32_t", ("2",), 8, "where tensor memory was allocated; [1] pads"))
    return in_order(wanted, PATTERN_BYTES)


def tensor_memory(g: Geometry) -> TensorMemory:
    """An accumulator per consumer and slot, each BLOCK_N columns wide, then the scales of each consumer; allocated as
    the next power of two."""
    names = [
        "acc" + (f" of consumer {c}" if g.consumers > 1 else "") + (f", slot {s}" if g.accumulators > 1 else "")
        for c in range(g.consumers)
        for s in range(g.accumulators)
    ]
    regions = [
        TmemRegion(name, i * g.block_n, g.block_n, f"{g.spec.tile.m} x {g.block_n} fp32")
        for i, name in enumerate(names)
    ]
    first = g.acc_slots * g.block_n
    for c in range(g.consumers if g.scales else 0):
        name = "scales" + (f" of consumer {c}" if g.consumers > 1 else "")
        regions.append(TmemRegion(name, first, g.scale_columns, "of the k tile that is multiplied: A's, then B's"))
        first += g.scale_columns
    allocated = MIN_COLUMNS
    while allocated < first:
        allocated *= 2
    return TensorMemory(tuple(regions), allocated, "mma" if g.specialized else "warpgroup")
