"""Which template says it, and by which names: parts, parameters, constants."""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.gemm_sm100a.geometry import ANSWER_BYTES, ANSWERS, BOX_MN, ROWS_PER_WARP, Geometry
from kgen.plan.geometry import PATTERN_BYTES
from kgen.plan.resources import Constant, SmemMap, TensorMemory
from kgen.plan.smem import smem_request

# Of A and B in the instruction descriptor. e2m1 is 1 in the kinds that pack it.
FORMATS = {"fp16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m1": 1}


def parts(g: Geometry) -> dict[str, str]:
    """The template file for each slot of the skeleton; a slot that a kernel lacks is absent."""
    s = g.spec
    common, arch = "gemm/common", f"gemm/{g.arch.folder}"
    pair = g.group > 1
    walked = g.persistent or g.clc
    wide = "_cluster" if pair and walked else ""
    shared = "_share_b" if pair else ""
    who = "pair" if pair else "cta"
    schedule = f"{common}/schedule/{s.schedule.kind}{wide}"
    if g.clc:
        schedule = f"{arch}/schedule/clc{'_pair' if pair else ''}"
    parts = {
        "schedule": f"{schedule}.cu",
        "sync": f"{arch}/sync/{who}.cu",
        "store": f"{arch}/store/{s.epilogue.store}.cu",
        "store_call": f"{arch}/store/{s.epilogue.store}_call.cu",
        "grid": f"{common}/launcher/grid_{s.schedule.kind}{wide or shared}.cu",
        "shapes": "project/shapes/any.py",
    }
    parts |= _operand_parts(g)
    if walked:
        parts["order"] = f"{common}/order/{'share_b' if pair else 'cta'}.cu"
        parts["walk"] = f"{common}/order/walk{'_serpentine' if s.schedule.walk == 'serpentine' else ''}.cu"
    if g.persistent:
        parts["ctas"] = f"{common}/launcher/ctas_{'auto' if s.schedule.ctas == 'auto' else 'fixed'}.cu"
    if s.schedule.kind == "single":
        limit = "one_k_tile" if s.k_loop == "once" else "one_tile"
        parts["limit"] = f"{common}/launcher/limit_{limit}.cu"
        parts["shapes"] = f"project/shapes/{limit}.py"
    if s.schedule.split_k > 1:
        parts["schedule"] = f"{arch}/schedule/split_k{'_pair' if pair else ''}.cu"
        parts["grid"] = f"{common}/launcher/grid_split_k{wide}.cu"
        parts["k_range"] = f"{arch}/split_k/range.cu"
        parts["share"] = f"{arch}/split_k/share.cu"
        parts["workspace"] = f"{common}/launcher/workspace.cu"
    paired = g.out_n != g.block_n
    source = "partials" if s.schedule.split_k > 1 else "tmem"
    parts["source"] = f"{arch}/store/from_{source}{'_pairs' if paired else ''}.cu"
    if g.staged:
        parts["source_parameters"] = f"{arch}/store/from_{source}_parameters.cu"
        parts["stage"] = f"{arch}/store/stage_{8 * g.output.bytes}bit.cu"
        parts["boxes"] = f"{arch}/store/boxes{'' if g.chunk == g.store_columns else '_in_parts'}.cu"
    if g.clc:
        parts["request"] = f"{arch}/role/request_{who}.cu"
        parts["next_tile"] = f"{arch}/role/next_tile_{who}.cu"
    if g.finish:
        parts["finish"] = f"{arch}/finish/{'pairs' if paired else 'columns'}.cu"
        parts |= {f"reduce_{r.along}": f"{arch}/finish/reduce_{r.along}.cu" for r in g.finish.reductions}
    if g.specialized:
        split = s.schedule.split_k > 1
        parts["epilogue"] = f"{arch}/split_k/epilogue_{who}.cu" if split else f"{arch}/role/epilogue.cu"
        parts["fill"] = f"{arch}/role/fill_{who}.cu"
        parts["mma"] = f"{arch}/role/mma_{who}.cu"
        parts["release"] = f"{arch}/role/release_{who}.cu"
        for operand, turned in zip("ab", g.transposed, strict=True):
            parts[f"copy_{operand}"] = f"{arch}/role/copy_{f'boxes_{who}' if turned else 'box'}.cu"
        if g.scales:
            parts["copy_scales"] = f"{arch}/role/copy_scales.cu"
    else:
        loop = "ring" if g.stages > 1 else s.k_loop
        parts["mainloop"] = f"{arch}/mainloop/{s.load}_{loop}.cu"
        parts["load"] = f"{common}/load_{s.load}.cu"
        if g.tma:
            parts["cursors"] = f"{arch}/mainloop/cursors_{loop}.cu"
        if g.persistent:
            parts["between"] = f"{arch}/sync/between_tiles.cu"
    return parts


def _operand_parts(g: Geometry) -> dict[str, str]:
    """What depends on the element types: how they are multiplied, made up, checked, and told."""
    arch, kind = f"gemm/{g.arch.folder}", _element_kind(g)
    scaled = "_scaled" if g.scales else ""
    parts = {
        "mma_k_tile": f"{arch}/mma{scaled}.cu",
        "issue": f"{arch}/issue{scaled}.cu",
        "operands_py": f"project/operands/{kind}.py",
        "operands_cu": f"project/operands/{kind}.cu",
    }
    if g.scales:
        parts["scales_cu"] = f"project/operands/{g.scales.name}.cu"
        parts["scales_py"] = f"project/operands/{g.scales.name}.py"
    for operand, turned in zip("ab", g.transposed, strict=True):
        parts[f"step_{operand}"] = f"{arch}/step/{'boxes' if turned else 'rows'}.cu"
    if g.input.packed > 1:
        parts["packed"] = "gemm/common/launcher/packed.cu"
    return parts


def _element_kind(g: Geometry) -> str:
    if g.scales:
        return "mxfp8" if g.input.packed == 1 else "fp4"
    return {"tf32": "tf32", "e4m3": "fp8", "e5m2": "fp8"}.get(g.input.name, "plain")


def parameters(g: Geometry) -> tuple[str, ...]:
    """The kernel's parameters, by name, in order."""
    loads = ("map_a", "map_b") if g.tma else ("a", "lda", "b", "ldb")
    scales = ("map_sfa", "map_sfb") if g.scales else ()
    stores = ("map_d", "d", "ldd") if g.staged else ("d", "ldd")
    if g.spec.schedule.split_k > 1:
        stores += ("counters", "partials")
    return (*loads, *scales, *stores, "m", "n", "k", *(("e",) if g.finish else ()))


def constants(g: Geometry, smem: SmemMap, tmem: TensorMemory) -> tuple[tuple[Constant, ...], ...]:
    """The constants of the generated file, in groups."""
    cta = (*_schedule_constants(g, smem), *_thread_constants(g))
    groups = (_tile_constants(g), _mma_constants(g, tmem), _scale_constants(g), _ring_constants(g), cta)
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
    row = "one 128-byte swizzled row" if g.input.packed == 1 else "128 bytes of two elements"
    yield C("BLOCK_K", str(g.units_k), g.units_k, f"depth of a k tile: {row}")
    if any(g.transposed):
        why = "rows of A or B in one swizzled row, along m or n"
        yield C("BOX_MN", "128 / sizeof(Input)", BOX_MN, why)
    if g.group > 1:
        yield C("CLUSTER_SIZE", "2", 2, "a pair of CTAs stacked along M, whose tensor cores work as one")
        yield C("PAIR", "0b11", 3, "both CTAs, where a commit signals them")
        yield C("B_SLICE", "BLOCK_N / CLUSTER_SIZE", g.b_rows, "rows of B that each CTA holds for both")
        yield C("TILE_M", "CLUSTER_SIZE * BLOCK_M", g.group * g.block_m, "rows of D per pair")
        yield C("TILE_N", "BLOCK_N", g.block_n, "columns of D per pair")
    if g.spec.schedule.split_k > 1:
        rows = "TILE_M" if g.group > 1 else "BLOCK_M"
        yield C("TILE_ROWS", rows, g.group * g.block_m, "rows of D that CTAs multiply together")
        yield C("SPLIT_K", str(g.spec.schedule.split_k), g.spec.schedule.split_k, "parts of K; less where K is shorter")


def _mma_constants(g: Geometry, tmem: TensorMemory) -> Iterator[Constant]:
    C = Constant
    rows = "CONSUMER_M" if g.specialized else "BLOCK_M"
    yield C("MMA_M", f"CLUSTER_SIZE * {rows}" if g.group > 1 else rows, g.mma_m, "rows that one MMA computes")
    yield C("MMA_K", "32 / sizeof(Input)", g.mma_k // g.input.packed, "depth of one MMA: 32 bytes of each row")
    yield _input_format(g)
    value, expr, why = _result_format(g)
    value |= _input_format(g).value | g.block_n >> 3 << 17 | g.mma_m >> 4 << 24
    yield C("INSTRUCTION", f"{expr} | INPUT_FORMAT | BLOCK_N / 8 << 17 | MMA_M / 16 << 24", value, why)
    if g.specialized:
        yield C("ACCUMULATORS", str(g.accumulators), g.accumulators, "of each consumer, used in turn")
        yield C("ACC_SLOTS", "NUM_CONSUMERS * ACCUMULATORS", g.acc_slots, "accumulators in tensor memory")
    why = "allocated: a power of two" + ("" if tmem.used == tmem.allocated else f"; {tmem.used} are used")
    yield C("TMEM_COLUMNS", str(tmem.allocated), tmem.allocated, why)


def _input_format(g: Geometry) -> Constant:
    """The bits of the instruction descriptor that say what A and B are."""
    other = g.other or g.input
    bits = [(FORMATS[g.input.name], 7), (FORMATS[other.name], 10)]
    why = f"A is {g.input.name}, B is {other.name}" if g.other else f"A and B are {g.input.name}"
    for operand, bit, turned in zip(("A along m", "B along n"), (15, 16), g.transposed, strict=True):
        if turned:
            bits.append((1, bit))
            why += f"; {operand}"
    return Constant("INPUT_FORMAT", " | ".join(f"{x} << {at}" for x, at in bits), sum(x << at for x, at in bits), why)


def _result_format(g: Geometry) -> tuple[int, str, str]:
    """Likewise of D, or of the scales; D is fp32 where there are scales."""
    if not g.scales:
        return 1 << 4, "1 << 4", "fp32 sums"
    power = g.scales.name == "ue8m0"
    return power << 23, f"{int(power)} << 23", f"{g.scales.name} scales"


def _scale_constants(g: Geometry) -> Iterator[Constant]:
    if not g.scales:
        return
    C, s, (sfa, sfb) = Constant, g.scales, g.scale_atoms
    atom = s.ATOM_BYTES
    yield C("ATOM_ROWS", str(s.ATOM_ROWS), s.ATOM_ROWS, "rows whose scales lie together, four blocks of each")
    yield C("ATOM_K", str(4 * s.block), 4 * s.block, f"elements of K that an atom is for: a scale each {s.block}")
    yield C("ATOM_BYTES", "4 * ATOM_ROWS", atom)
    yield C("ATOM_WORDS", "ATOM_BYTES / 8", atom // 8, "as the TMA engine counts them")
    yield C("ATOM_COLUMNS", "ATOM_ROWS / 32", s.ATOM_COLUMNS, "of tensor memory: 32 rows each, copied to all quarters")
    yield C("ATOMS_K", str(s.atoms), s.atoms, f"along a k tile: {g.block_k} elements in blocks of {s.block}")
    yield C("STEP_SCALES", str(s.per_step), s.per_step, "of each row, that one MMA reads")
    yield C("SFA_BYTES", "BLOCK_M / ATOM_ROWS * ATOMS_K * ATOM_BYTES", sfa * atom, "scales of a k tile of A")
    yield C("SFB_BYTES", "BLOCK_N / ATOM_ROWS * ATOMS_K * ATOM_BYTES", sfb * atom, "of B: all columns, in both CTAs"
            if g.group > 1 else "scales of a k tile of B")  # fmt: skip
    yield C("SCALE_BYTES", "SFA_BYTES + SFB_BYTES", (sfa + sfb) * atom)
    yield C("SCALE_TMEM", "ACC_SLOTS * BLOCK_N", g.acc_slots * g.block_n, "the first column of scales")
    columns = "ATOMS_K * (1 + BLOCK_N / ATOM_ROWS) * ATOM_COLUMNS"
    yield C("SCALE_COLUMNS", columns, g.scale_columns, "of each consumer")


def _ring_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.tma:
        yield C("STAGES", str(g.stages), g.stages, "k tiles in shared memory")
        rows = "B_SLICE" if g.group > 1 else "BLOCK_N"
        bytes_ = f"(BLOCK_M + {rows}) * BLOCK_K * sizeof(Input)"
        if g.scales:  # their elements are bytes
            bytes_ = f"(BLOCK_M + {rows}) * BLOCK_K + SCALE_BYTES"
            bytes_ = f"({bytes_})" if g.group > 1 else bytes_
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
    if g.clc:
        yield C("CLC_SLOTS", str(ANSWERS), ANSWERS, "answers of launch control at a time")
        yield C("CLC_BYTES", str(ANSWER_BYTES), ANSWER_BYTES, "of an answer")
        each = "CLUSTER_SIZE * (4 * NUM_CONSUMERS + 1)" if g.group > 1 else "4 * NUM_CONSUMERS + 1"
        expr = f"{each} + NUM_CONSUMERS + 1"
        readers = g.group * (g.store_warps + 1) + g.consumers + 1
        yield C("CLC_EMPTY_ARRIVALS", expr, readers, "who reads answers")
    if g.persistent or g.clc:
        yield C("GROUP_M", str(schedule.group_m), schedule.group_m, "rows of tiles walked before the next column")
        if schedule.ctas != "auto":
            yield C("NUM_CTAS", str(schedule.ctas), schedule.ctas, "launched, unless there are fewer tiles")


def _thread_constants(g: Geometry) -> Iterator[Constant]:
    C = Constant
    if g.specialized:
        yield C("MMA_WARP", "4 * NUM_CONSUMERS", g.mma_warp, "the first of NUM_CONSUMERS that issue MMAs")
        yield C("PRODUCER_WARP", "MMA_WARP + NUM_CONSUMERS", g.producer_warp)
        if g.clc:
            yield C("SCHEDULER_WARP", "PRODUCER_WARP + 1", g.producer_warp + 1)
        if g.idle_warps:
            yield C("NUM_THREADS", "128 * (NUM_CONSUMERS + 1)", g.threads, "setmaxnreg acts on whole warpgroups")
        else:
            last = "SCHEDULER_WARP" if g.clc else "PRODUCER_WARP"
            yield C("NUM_THREADS", f"32 * ({last} + 1)", g.threads)
    else:
        yield C("NUM_THREADS", "128", 128, "one warpgroup")
    if split := g.spec.warps.registers:
        yield C("CONTROL_REGISTERS", str(split.control), split.control, "per thread; loops of one thread need few")
        yield C("EPILOGUE_REGISTERS", str(split.epilogue), split.epilogue, "per thread; room for a chunk of D")
    why = "columns of an accumulator in registers"
    if g.staged:
        if g.chunk == g.store_columns:
            yield C("CHUNK", "128 / sizeof(Output)", g.chunk, f"{why}: one swizzled row")
        else:
            yield C("STORE_COLUMNS", "128 / sizeof(Output)", g.store_columns, "one swizzled row")
            yield C("CHUNK", f"STORE_COLUMNS / {g.store_columns // g.chunk}", g.chunk, f"{why}: registers are few")
        yield C("STORE_ROWS", str(ROWS_PER_WARP), ROWS_PER_WARP, "of 128 that a warp may read")
        yield C("STORE_STEP", "16 / sizeof(Output)", 16 // g.output.bytes, "where a TMA store can end")
        yield C("STAGING", str(g.spec.epilogue.staging), g.spec.epilogue.staging, "store boxes per warp")
    else:
        yield C("CHUNK", str(g.chunk), g.chunk, why)
