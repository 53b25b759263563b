"""Which template says it, and by which names: parts, parameters, constants."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.gemm_sm100a.geometry import PATTERN_BYTES, ROWS_PER_WARP, Geometry
from kgen.plan.resources import Constant, SmemMap, TensorMemory
from kgen.plan.smem import smem_request

FORMATS = {"fp16": 0, "bf16": 1}  # of A and B in the instruction descriptor of kind::f16


def parts(g: Geometry) -> dict[str, str]:
    """The template file for each slot of the skeleton; a slot that a kernel lacks is absent."""
    s = g.spec
    common, arch = "gemm/common", f"gemm/{g.arch.folder}"
    pair = g.group > 1
    wide = "_cluster" if pair and g.persistent else ""
    shared = "_share_b" if pair else ""
    who = "pair" if pair else "cta"
    parts = {
        "schedule": f"{common}/schedule/{s.schedule.kind}{wide}.cu",
        "sync": f"{arch}/sync/{who}.cu",
        "store": f"{arch}/store/{s.epilogue.store}.cu",
        "store_call": f"{arch}/store/{s.epilogue.store}_call.cu",
        "grid": f"{common}/launcher/grid_{s.schedule.kind}{wide or shared}.cu",
        "shapes": "project/shapes/any.py",
    }
    if g.persistent:
        parts["order"] = f"{common}/order/{'share_b' if pair else 'cta'}.cu"
        parts["ctas"] = f"{common}/launcher/ctas_{'auto' if s.schedule.ctas == 'auto' else 'fixed'}.cu"
    if s.schedule.kind == "single":
        limit = "one_k_tile" if s.k_loop == "once" else "one_tile"
        parts["limit"] = f"{common}/launcher/limit_{limit}.cu"
        parts["shapes"] = f"project/shapes/{limit}.py"
    paired = g.out_n != g.block_n
    if g.staged:
        parts["stage"] = f"{arch}/store/stage_{8 * g.output.bytes}bit.cu"
    if g.finish:
        parts["finish"] = f"{arch}/finish/{'pairs' if paired else 'columns'}.cu"
        parts |= {f"reduce_{r.along}": f"{arch}/finish/reduce_{r.along}.cu" for r in g.finish.reductions}
    if g.specialized:
        parts["fill"] = f"{arch}/role/fill_{who}.cu"
        parts["mma"] = f"{arch}/role/mma_{who}.cu"
        parts["release"] = f"{arch}/role/release_{who}.cu"
    else:
        loop = "ring" if g.stages > 1 else s.k_loop
        parts["mainloop"] = f"{arch}/mainloop/{s.load}_{loop}.cu"
        parts["load"] = f"{common}/load_{s.load}.cu"
        if g.persistent:
            parts["between"] = f"{arch}/sync/between_tiles.cu"
    return parts


def parameters(g: Geometry) -> tuple[str, ...]:
    """The kernel's parameters, by name, in order."""
    loads = ("map_a", "map_b") if g.tma else ("a", "lda", "b", "ldb")
    stores = ("map_d", "d", "ldd") if g.staged else ("d", "ldd")
    return (*loads, *stores, "m", "n", "k", *(("e",) if g.finish else ()))


def constants(g: Geometry, smem: SmemMap, tmem: TensorMemory) -> tuple[tuple[Constant, ...], ...]:
    """The constants of the generated file, in groups."""
    cta = (*_schedule_constants(g, smem), *_thread_constants(g))
    groups = (_tile_constants(g), _mma_constants(g, tmem), _ring_constants(g), cta)
    return tuple(tuple(group) for group in groups if group)


def _tile_constants(g: Geometry) -> Iterator[Constant]:
    tile, C = g.spec.tile, Constant
    if g.specialized:
        yield C("NUM_CONSUMERS", str(g.consumers), g.consumers, "accumulators that each k tile of B feeds")
        yield C("CONSUMER_M", str(tile.m), tile.m, "rows of D per consumer: the lanes of tensor memory")
        yield C("BLOCK_M", "NUM_CONSUMERS * CONSUMER_M", g.block_m, "rows of D per CTA")
    else:
        yield C("BLOCK_M", str(tile.m), tile.m, "rows of D per CTA: the lanes of tensor memory")
    yield C("BLOCK_N", str(tile.n), tile.n, "columns of D per CTA; one MMA spans them")
    if g.out_n != g.block_n:
        yield C("OUT_N", "BLOCK_N / 2", g.out_n, "columns of D per CTA: two neighbours make one")
    yield C("BLOCK_K", str(tile.k), tile.k, "depth of a k tile: one 128-byte swizzled row")
    if g.group > 1:
        yield C("CLUSTER_SIZE", "2", 2, "a pair of CTAs stacked along M, whose tensor cores work as one")
        yield C("PAIR", "0b11", 3, "both CTAs, where a commit signals them")
        yield C("B_SLICE", "BLOCK_N / CLUSTER_SIZE", g.b_rows, "rows of B that each CTA holds for both")
        yield C("TILE_M", "CLUSTER_SIZE * BLOCK_M", g.group * g.block_m, "rows of D per pair")
        yield C("TILE_N", "BLOCK_N", g.block_n, "columns of D per pair")


def _mma_constants(g: Geometry, tmem: TensorMemory) -> Iterator[Constant]:
    C, form = Constant, FORMATS[g.input.name]
    rows = "CONSUMER_M" if g.specialized else "BLOCK_M"
    yield C("MMA_M", f"CLUSTER_SIZE * {rows}" if g.group > 1 else rows, g.mma_m, "rows that one MMA computes")
    yield C("MMA_K", "32 / sizeof(Input)", g.mma_k, "depth of one MMA: 32 bytes of each row")
    yield C("INPUT_FORMAT", f"{form} << 7 | {form} << 10", form << 7 | form << 10, f"A and B are {g.input.name}")
    value = 1 << 4 | form << 7 | form << 10 | g.block_n >> 3 << 17 | g.mma_m >> 4 << 24
    yield C(
        "INSTRUCTION",
        "1 << 4 | INPUT_FORMAT | BLOCK_N / 8 << 17 | MMA_M / 16 << 24",
        value,
        "fp32 sums",
    )
    if g.specialized:
        yield C("ACCUMULATORS", str(g.accumulators), g.accumulators, "of each consumer, used in turn")
        yield C("ACC_SLOTS", "NUM_CONSUMERS * ACCUMULATORS", g.acc_slots, "accumulators in tensor memory")
    why = "allocated: a power of two" + ("" if tmem.used == tmem.allocated else f"; {tmem.used} are used")
    yield C("TMEM_COLUMNS", str(tmem.allocated), tmem.allocated, why)


def _ring_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.tma:
        yield C("STAGES", str(g.stages), g.stages, "k tiles in shared memory")
        rows = "B_SLICE" if g.group > 1 else "BLOCK_N"
        bytes_ = f"(BLOCK_M + {rows}) * BLOCK_K * sizeof(Input)"
        if g.group > 1:
            yield C("STAGE_BYTES", f"CLUSTER_SIZE * {bytes_}", 2 * g.stage_bytes, "of both CTAs")
        else:
            yield C("STAGE_BYTES", bytes_, g.stage_bytes, "what one phase of `full` waits for")
    if g.specialized:
        if g.consumers > 1:
            yield C("EMPTY_ARRIVALS", "NUM_CONSUMERS", g.consumers, "a commit by each thread that issues MMAs")
        expr = "4 * CLUSTER_SIZE" if g.group > 1 else "4"
        yield C("ACC_EMPTY_ARRIVALS", expr, 4 * g.group, "every warp that reads the accumulator")


def _schedule_constants(g: Geometry, smem: SmemMap) -> Iterator[Constant]:
    schedule, C = g.spec.schedule, Constant
    yield C("CTAS_PER_SM", str(g.residents), g.residents, "resident together: no fewer, no more")
    request = smem_request(g.arch, g.residents, smem)
    why = "asked for: more than is used, so that no further CTA fits" if request > smem.bytes else "dynamic"
    yield C("SMEM_BYTES", str(request), request, why)
    yield C("SMEM_ALIGNMENT", str(PATTERN_BYTES), PATTERN_BYTES, "the 128-byte swizzle starts anew every 1024 bytes")
    if g.persistent:
        yield C("GROUP_M", str(schedule.group_m), schedule.group_m, "rows of tiles walked before the next column")
        if schedule.ctas != "auto":
            yield C("NUM_CTAS", str(schedule.ctas), schedule.ctas, "launched, unless there are fewer tiles")


def _thread_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.specialized:
        yield C("MMA_WARP", "4 * NUM_CONSUMERS", g.mma_warp, "the first of NUM_CONSUMERS that issue MMAs")
        yield C("PRODUCER_WARP", "MMA_WARP + NUM_CONSUMERS", g.producer_warp)
        if g.idle_warps:
            yield C("NUM_THREADS", "128 * (NUM_CONSUMERS + 1)", g.threads, "setmaxnreg acts on whole warpgroups")
        else:
            yield C("NUM_THREADS", "32 * (PRODUCER_WARP + 1)", g.threads)
    else:
        yield C("NUM_THREADS", "128", 128, "one warpgroup")
    if split := g.spec.warps.registers:
        yield C("CONTROL_REGISTERS", str(split.control), split.control, "per thread; loops of one thread need few")
        yield C("EPILOGUE_REGISTERS", str(split.epilogue), split.epilogue, "per thread; room for a chunk of D")
    why = "columns of an accumulator in registers"
    if g.staged:
        yield C("CHUNK", "128 / sizeof(Output)", g.chunk, f"{why}: one swizzled row")
        yield C("STORE_ROWS", str(ROWS_PER_WARP), ROWS_PER_WARP, "of 128 that a warp may read")
        yield C("STORE_STEP", "16 / sizeof(Output)", 16 // g.output.bytes, "where a TMA store can end")
        yield C("STAGING", str(g.spec.epilogue.staging), g.spec.epilogue.staging, "store boxes per warp")
    else:
        yield C("CHUNK", str(g.chunk), g.chunk, why)
