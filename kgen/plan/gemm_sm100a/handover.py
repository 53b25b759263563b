"""Roles, and how data passes between them: barriers, tensor maps, launch."""

from __future__ import annotations

from kgen.plan.gemm_sm100a.geometry import ROWS_PER_WARP, Geometry
from kgen.plan.resources import Arriver, Barrier, Delivery, Launch, Pipeline, Role, SmemMap, TensorMap
from kgen.plan.smem import smem_request


def pipelines(g: Geometry) -> tuple[Pipeline, ...]:
    """The operand ring (nothing where the threads load), then the accumulators."""
    return (*((_operands(g),) if g.tma else ()), _accumulators(g))


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
        deliveries=tuple(Delivery(t.operand, g.group, t.box_bytes) for t in _load_maps(g)),
    )
    empty = Barrier(
        "empty",
        g.stages,
        (Arriver(reader, g.consumers, "commit"),),
        waiter=loader,
        first_parity=1,
        why="the MMAs that read the k tile are complete",
    )
    return Pipeline("operands", g.stages, ("a", "b"), loader, reader, full, empty)


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
    return Pipeline("accumulators", g.acc_slots, ("acc",), issuer, drain, full, empty)


def _load_maps(g: Geometry) -> list[TensorMap]:
    def load(operand: str, rows: str, box_rows: int, expr: str) -> TensorMap:
        return TensorMap(
            name=f"map_{operand}",
            operand=operand,
            rows=rows,
            columns="k",
            stride=f"ld{operand}",
            box_rows=box_rows,
            box_columns=g.spec.tile.k,
            box_rows_expr=expr,
            box_columns_expr="BLOCK_K",
            dtype=g.input.tensor_map,
            element_bytes=g.input.bytes,
        )

    return [
        load("a", "m", g.block_m, "BLOCK_M"),
        load("b", "n", g.b_rows, "B_SLICE" if g.group > 1 else "BLOCK_N"),
    ]


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
                box_columns=g.chunk,
                box_rows_expr="STORE_ROWS",
                box_columns_expr="CHUNK",
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
    if g.idle_warps:
        made.append(Role("idle", g.producer_warp + 1, g.idle_warps, "complete the warpgroup for setmaxnreg", control))
    return tuple(made)


def launch(g: Geometry, smem: SmemMap) -> Launch:
    """Block, cluster and shared memory of the launch."""
    request = smem_request(g.arch, g.residents, smem)
    return Launch(g.threads, (g.group, 1, 1), g.residents, g.launch_registers, request)
