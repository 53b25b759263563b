"""Roles, and how data passes between them: barriers, tensor maps, launch."""

from __future__ import annotations

from kgen.plan.gemm_sm100a.geometry import ANSWER_BYTES, ANSWERS, BOX_MN, ROWS_PER_WARP, Geometry
from kgen.plan.resources import Arriver, Barrier, Delivery, Launch, Pipeline, Role, Scales, SmemMap, TensorMap
from kgen.plan.smem import smem_request


def pipelines(g: Geometry) -> tuple[Pipeline, ...]:
    """The operand ring (nothing where the threads load), then the accumulators, then launch control's answers."""
    return (*((_operands(g),) if g.tma else ()), _accumulators(g), *((_answers(g),) if g.clc else ()))


def _operands(g: Geometry) -> Pipeline:
    loader, reader = ("producer", "mma") if g.specialized else ("warpgroup", "warpgroup")
    full = Barrier(
        "full",
        g.stages,
        (Arriver(loader, 1, "elected"),),
        waiter=reader,
        first_parity=0,
        why="the loader announces the bytes, the TMA engine delivers them"
        + (" for both CTAs to the pair's first" if g.group > 1 else ""),
        deliveries=tuple(Delivery(t.operand, g.group * t.boxes, t.box_bytes) for t in _load_maps(g)),
    )
    empty = Barrier(
        "empty",
        g.stages,
        (Arriver(reader, g.consumers, "commit"),),
        waiter=loader,
        first_parity=1,
        why="the MMAs that read the k tile are complete",
    )
    buffers = ("a", "b", "sfa", "sfb") if g.scales else ("a", "b")
    return Pipeline("operands", g.stages, buffers, loader, reader, full, empty)


def _accumulators(g: Geometry) -> Pipeline:
    issuer, drain = ("mma", "epilogue") if g.specialized else ("warpgroup", "warpgroup")
    full = Barrier(
        "acc_full",
        g.acc_slots,
        (Arriver(issuer, 1, "commit"),),
        waiter=drain,
        first_parity=0,
        why="every MMA of the tile is complete" if g.tma else "the MMAs of the k tile are complete",
    )
    empty = None
    if g.specialized:
        empty = Barrier(
            "acc_empty",
            g.acc_slots,
            (Arriver(drain, 4, "warp", ctas=g.group),),
            waiter=issuer,
            first_parity=1,
            why="every warp has read its lanes; the store goes on meanwhile",
        )
    return Pipeline("accumulators", g.acc_slots, ("acc",), issuer, drain, full, empty, "ACC_SLOTS" if empty else "")


def _answers(g: Geometry) -> Pipeline:
    """Launch control answers to each CTA; all readers tell the CTA that asks."""
    full = Barrier(
        "clc_full",
        ANSWERS,
        (Arriver("scheduler", 1, "elected"),),
        waiter="reader",
        first_parity=0,
        why="the scheduler announces the answer, launch control delivers it to every CTA",
        deliveries=(Delivery("answer", 1, ANSWER_BYTES),),
    )
    readers = (
        Arriver("epilogue", g.store_warps, "warp", ctas=g.group),
        Arriver("producer", 1, "elected", ctas=g.group),
        Arriver("mma", g.consumers, "elected"),
        Arriver("scheduler", 1, "elected"),
    )
    why = "every role has read the answer; the scheduler may ask for the one after the next"
    empty = Barrier("clc_empty", ANSWERS, readers, waiter="scheduler", first_parity=1, why=why)
    return Pipeline("answers", ANSWERS, ("clc",), "scheduler", "reader", full, empty, "CLC_SLOTS")


def _load_maps(g: Geometry) -> list[TensorMap]:
    of_b = "B_SLICE" if g.group > 1 else "BLOCK_N"
    (a_turned, b_turned), (sfa, sfb) = g.transposed, g.scale_atoms
    made = [
        _across(g, "a", "m", g.block_m) if a_turned else _along_k(g, "a", "m", g.block_m, "BLOCK_M"),
        _across(g, "b", "n", g.b_rows) if b_turned else _along_k(g, "b", "n", g.b_rows, of_b),
    ]
    if g.scales:
        made += [_scale_map(g, "a", "m", sfa, "BLOCK_M"), _scale_map(g, "b", "n", sfb, "BLOCK_N")]
    return made


def _along_k(g: Geometry, operand: str, rows: str, box_rows: int, expr: str) -> TensorMap:
    """A row-major [rows, k]: one box holds the tile."""
    return TensorMap(
        name=f"map_{operand}",
        operand=operand,
        rows=rows,
        columns="k",
        stride=f"ld{operand}",
        box_rows=box_rows,
        box_columns=g.units_k,
        box_rows_expr=expr,
        box_columns_expr="BLOCK_K",
        dtype=g.input.tensor_map,
        element_bytes=g.input.bytes,
        packed=g.input.packed,
    )


def _across(g: Geometry, operand: str, columns: str, extent: int) -> TensorMap:
    """A row-major [k, columns]: a swizzled row holds 64 columns, so that a tile takes several boxes."""
    return TensorMap(
        name=f"map_{operand}",
        operand=operand,
        rows="k",
        columns=columns,
        stride=f"ld{operand}",
        box_rows=g.units_k,
        box_columns=BOX_MN,
        box_rows_expr="BLOCK_K",
        box_columns_expr="BOX_MN",
        dtype=g.input.tensor_map,
        element_bytes=g.input.bytes,
        boxes=extent // BOX_MN,
    )


def _scale_map(g: Geometry, operand: str, rows: str, atoms: int, expr: str) -> TensorMap:
    """Atoms of scales: a row of them for 128 rows of the operand, in 8-byte words so that four fit a box."""
    words = Scales.ATOM_BYTES // 8
    return TensorMap(
        name=f"map_sf{operand}",
        operand=f"sf{operand}",
        rows=rows,
        columns="k",
        stride="",
        box_rows=atoms // g.scales.atoms,
        box_columns=g.scales.atoms * words,
        box_rows_expr=f"{expr} / ATOM_ROWS",
        box_columns_expr="ATOMS_K * ATOM_WORDS",
        dtype="CU_TENSOR_MAP_DATA_TYPE_UINT64",
        element_bytes=8,
    )


def tensor_maps(g: Geometry) -> tuple[TensorMap, ...]:
    """The TMA descriptors of the kernel, in the order of its parameters."""
    maps = _load_maps(g) if g.tma else []
    if g.staged:
        maps.append(
            TensorMap(
                name="map_d",
                operand="d",
                rows="m",
                columns=g.finish.columns if g.finish else "n",
                stride="ldd",
                box_rows=ROWS_PER_WARP,
                box_columns=g.store_columns,
                box_rows_expr="STORE_ROWS",
                box_columns_expr=g.box_extent,
                dtype=g.output.tensor_map,
                element_bytes=g.output.bytes,
            )
        )
    return tuple(maps)


def roles(g: Geometry) -> tuple[Role, ...]:
    """The warps of a CTA by what they do."""
    if not g.specialized:
        return (Role("warpgroup", 0, 4, "loads, lets one thread issue the MMAs, and stores"),)
    split = g.spec.warps.registers
    control = split and split.control
    each = "each: one elected thread" if g.consumers > 1 else "one elected thread"
    whose = " of the pair's first CTA" if g.group > 1 else ""
    made = [
        Role("epilogue", 0, g.store_warps, "read their lanes of an accumulator, store them", split and split.epilogue),
        Role("mma", g.mma_warp, g.consumers, f"{each}{whose} issues the MMAs of a consumer", control),
        Role("producer", g.producer_warp, 1, "one elected thread keeps the ring full", control),
    ]
    if g.clc:
        made.append(Role("scheduler", g.producer_warp + 1, 1, f"one elected thread{whose} asks for tiles", control))
    if g.idle_warps:
        first = g.mma_warp + g.control_warps
        made.append(Role("idle", first, g.idle_warps, "complete the warpgroup for setmaxnreg", control))
    return tuple(made)


def launch(g: Geometry, smem: SmemMap) -> Launch:
    """Block, cluster and shared memory of the launch."""
    request = smem_request(g.arch, g.residents, smem)
    return Launch(g.threads, (g.group, 1, 1), g.residents, g.launch_registers, request)
