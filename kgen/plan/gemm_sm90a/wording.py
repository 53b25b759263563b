"""Which template says it, and by which names: parts, parameters, constants."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.gemm_sm90a.geometry import ROWS_PER_WARP, Geometry
from kgen.plan.geometry import PATTERN_BYTES
from kgen.plan.resources import Constant, SmemMap
from kgen.plan.smem import smem_request


def parts(g: Geometry) -> dict[str, str]:
    """The template file for each slot of the skeleton; a slot that a kernel lacks is absent."""
    s = g.spec
    common, arch = "gemm/common", f"gemm/{g.arch.folder}"
    clustered = g.cluster > 1
    shared = f"_share_{s.cluster.multicast}" if clustered else ""
    wide = "_cluster" if clustered and s.schedule.kind == "persistent" else ""
    finished = "_finished" if g.finish and not g.staged else ""
    parts = {
        "schedule": f"{common}/schedule/{s.schedule.kind}{wide}.cu",
        "mma": f"{arch}/mma.cu",
        "store": f"{arch}/store/{s.epilogue.store}{finished}.cu",
        "store_call": f"{arch}/store/{s.epilogue.store}_call.cu",
        "grid": f"{common}/launcher/grid_{s.schedule.kind}{wide or shared}.cu",
    }
    if s.schedule.kind == "persistent":
        parts["walk"] = f"{common}/order/walk.cu"
        parts["order"] = f"{common}/order/{shared.strip('_') or 'cta'}.cu"
        parts["ctas"] = f"{common}/launcher/ctas_{'auto' if s.schedule.ctas == 'auto' else 'fixed'}.cu"
    parts["shapes"] = "project/shapes/any.py"
    parts["operands_py"] = "project/operands/plain.py"
    parts["operands_cu"] = "project/operands/plain.cu"
    if s.schedule.kind == "single":
        limit = "one_k_tile" if s.k_loop == "once" else "one_tile"
        parts["limit"] = f"{common}/launcher/limit_{limit}.cu"
        parts["shapes"] = f"project/shapes/{limit}.py"
    paired = g.out_n != g.block_n
    if g.staged:
        parts["stage"] = f"{arch}/store/stage_{'pairs' if paired else f'{8 * g.output.bytes}bit'}.cu"
    if g.finish:
        parts["finish"] = f"{arch}/finish/{'pairs' if paired else 'columns'}.cu"
        parts |= {f"reduce_{r.along}": f"{arch}/finish/reduce_{r.along}.cu" for r in g.finish.reductions}
    if g.tma:
        parts["sync"] = f"{arch}/sync/{'cluster' if clustered else 'cta'}.cu"
    if clustered:
        parts["leave"] = f"{arch}/sync/leave_cluster.cu"
        parts["slice"] = f"{arch}/role/slice_{s.cluster.multicast}.cu"
    if g.specialized:
        parts["fill"] = f"{arch}/role/fill{shared}.cu"
        parts["release"] = f"{arch}/role/release_{'cluster' if clustered else 'cta'}.cu"
    else:
        loop = "ring" if g.stages > 1 else s.k_loop
        parts["mainloop"] = f"{arch}/mainloop/{s.load}_{loop}.cu"
        parts["load"] = f"{common}/load_{s.load}.cu"
    return parts


def parameters(g: Geometry) -> tuple[str, ...]:
    """The kernel's parameters, by name, in order."""
    loads = ("map_a", "map_b") if g.tma else ("a", "lda", "b", "ldb")
    stores = ("map_d", "d", "ldd") if g.staged else ("d", "ldd")
    return (*loads, *stores, "m", "n", "k", *(("e",) if g.finish else ()))


def constants(g: Geometry, smem: SmemMap) -> tuple[tuple[Constant, ...], ...]:
    """The constants of the generated file, in groups."""
    cta = (*_schedule_constants(g, smem), *_thread_constants(g))
    groups = (_tile_constants(g), _ring_constants(g), cta)
    return tuple(tuple(g) for g in groups if g)


def _tile_constants(g: Geometry) -> Iterator[Constant]:
    tile, C = g.spec.tile, Constant
    rows = "BLOCK_M"
    if g.specialized:
        rows = "CONSUMER_M"
        yield C("NUM_CONSUMERS", str(g.consumers), g.consumers, "warpgroups that multiply and store")
        yield C("CONSUMER_M", str(tile.m), tile.m, "rows of D per consumer")
        yield C("BLOCK_M", "NUM_CONSUMERS * CONSUMER_M", g.block_m, "rows of D per CTA")
    else:
        yield C("BLOCK_M", str(tile.m), tile.m, "rows of D per CTA")
    yield C("BLOCK_N", str(tile.n), tile.n, "columns of D per CTA; one wgmma spans them")
    if g.staged and g.out_n != g.block_n:
        yield C("OUT_N", "BLOCK_N / 2", g.out_n, "columns of D per CTA: two neighbours make one")
    yield C("BLOCK_K", str(tile.k), tile.k, "depth of a k tile: one 128-byte swizzled row")
    yield C("M_BLOCKS", f"{rows} / 64", tile.m // 64, "wgmma works on 64 rows")


def _ring_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.tma:
        yield C("STAGES", str(g.stages), g.stages, "k tiles in shared memory")
        yield C("STAGE_BYTES", "(BLOCK_M + BLOCK_N) * BLOCK_K * sizeof(Input)", g.stage_bytes,
                "what one phase of `full` waits for")  # fmt: skip
    if g.specialized:
        expr = "4 * NUM_CONSUMERS" + (" * CLUSTER_SIZE" if g.cluster > 1 else "")
        why = "every consumer warp" + (" that shares the stage" if g.cluster > 1 else "")
        if g.cluster > 1:
            yield from _cluster_constants(g)
        yield C("EMPTY_ARRIVALS", expr, 4 * g.consumers * g.cluster, why)


def _cluster_constants(g: Geometry) -> Iterator[Constant]:
    C, n = Constant, g.cluster
    along_m, along_n = (n, 1) if g.share_b else (1, n)
    side, block, rows = ("B", "BLOCK_N", g.block_n) if g.share_b else ("A", "BLOCK_M", g.block_m)
    place = "stacked along M; they share B" if g.share_b else "side by side along N; they share A"
    tile_m, tile_n = (f"CLUSTER_SIZE * {b}" if x else b for b, x in (("BLOCK_M", g.share_b), ("BLOCK_N", g.share_a)))
    yield C("CLUSTER_SIZE", str(n), n, f"CTAs {place}")
    yield C("ALL_CTAS", "(1 << CLUSTER_SIZE) - 1", (1 << n) - 1, "multicast mask")
    yield C("TILE_M", tile_m, along_m * g.block_m, "rows of D per cluster")
    yield C("TILE_N", tile_n, along_n * g.block_n, "columns of D per cluster")
    yield C(f"{side}_SLICE", f"{block} / CLUSTER_SIZE", rows // n, f"rows of {side} that each CTA loads for all")


def _schedule_constants(g: Geometry, smem: SmemMap) -> Iterator[Constant]:
    schedule, C = g.spec.schedule, Constant
    yield C("CTAS_PER_SM", str(schedule.ctas_per_sm), schedule.ctas_per_sm, "resident together: no fewer, no more")
    request = smem_request(g.arch, g.residents, smem)
    why = "asked for: more than is used, so that no further CTA fits" if request > smem.bytes else "dynamic"
    yield C("SMEM_BYTES", str(request), request, why)
    yield C("SMEM_ALIGNMENT", str(PATTERN_BYTES), PATTERN_BYTES, "the 128-byte swizzle starts anew every 1024 bytes")
    if schedule.kind == "persistent":
        yield C("GROUP_M", str(schedule.group_m), schedule.group_m, "rows of tiles walked before the next column")
        if schedule.ctas != "auto":
            yield C("NUM_CTAS", str(schedule.ctas), schedule.ctas, "launched, unless there are fewer tiles")


def _thread_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.specialized:
        warps, whole = g.producer_warps, "setmaxnreg acts on a whole warpgroup"
        yield C("PRODUCER_WARPS", str(warps), warps, whole if warps == 4 else "one thread of it issues every load")
        yield C("NUM_THREADS", "32 * (4 * NUM_CONSUMERS + PRODUCER_WARPS)", g.threads)
    else:
        yield C("NUM_THREADS", "128", 128, "one warpgroup")
    if split := g.spec.warps.registers:
        yield C("PRODUCER_REGISTERS", str(split.producer), split.producer, "per thread; a copy loop needs few")
        yield C("CONSUMER_REGISTERS", str(split.consumer), split.consumer, "per thread; room for accumulators")
    if g.finish and not g.staged:
        held = 4 * g.out_n // g.block_n
        yield C("PART", str(held), held, f"elements of D that a lane holds of {2 * held} columns of a warp's 16 rows")
    if g.staged:
        yield C("STORE_ROWS", str(ROWS_PER_WARP), ROWS_PER_WARP, "of 64 that a warp holds")
        yield C("STORE_COLUMNS", "128 / sizeof(Output)", g.store_columns, "one 128-byte swizzled row")
        yield C("STORE_STEP", "16 / sizeof(Output)", 16 // g.output.bytes, "where a TMA store can end")
        yield C("STAGING", str(g.spec.epilogue.staging), g.spec.epilogue.staging, "store boxes per warp")
