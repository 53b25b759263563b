"""Roles, and how data passes between them: barriers, tensor maps, launch."""

from __future__ import annotations

from kgen.plan.gemm_sm90a.geometry import ROWS_PER_WARP, Geometry
from kgen.plan.resources import Arriver, Barrier, Delivery, Launch, Pipeline, Role, SmemMap, TensorMap
from kgen.plan.smem import smem_request


def pipelines(g: Geometry) -> tuple[Pipeline, ...]:
    """The operand ring, or nothing where the threads load."""
    if not g.tma:
        return ()
    loader, reader = ("producer", "consumer") if g.specialized else ("warpgroup", "warpgroup")
    full = Barrier(
        "full",
        g.stages,
        (Arriver(loader, 1, "elected"),),
        waiter=reader,
        first_parity=0,
        why="the loader announces the bytes, the TMA engine delivers them",
        deliveries=tuple(
            Delivery(t.operand, _copies(g, t.operand), t.box_bytes) for t in _load_maps(g)
        ),
    )
    empty = None
    if g.specialized:
        empty = Barrier(
            "empty",
            g.stages,
            (Arriver(reader, 4 * g.consumers, "warp", ctas=g.cluster),),
            waiter=loader,
            first_parity=1,
            why="every warp that multiplied the k tile has seen its wgmma group complete",
        )
    return (Pipeline("operands", g.stages, ("a", "b"), loader, reader, full, empty),)


def _copies(g: Geometry, operand: str) -> int:
    """Boxes of an operand that land in one CTA per k tile: its own, and its peers' slices where it is shared."""
    shared = (operand == "a" and g.share_a) or (operand == "b" and g.share_b)
    return g.cluster if shared else 1


def _load_maps(g: Geometry) -> list[TensorMap]:
    """A in boxes of BLOCK_M rows, B of BLOCK_N; the shared operand in slices, one per CTA of the cluster."""
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
        load("a", "m", g.block_m // g.cluster_n, "A_SLICE" if g.share_a else "BLOCK_M"),
        load("b", "n", g.block_n // g.cluster_m, "B_SLICE" if g.share_b else "BLOCK_N"),
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
                box_columns=g.store_columns,
                box_rows_expr="STORE_ROWS",
                box_columns_expr="STORE_COLUMNS",
                dtype=g.output.tensor_map,
                element_bytes=g.output.bytes,
            )
        )
    return tuple(maps)


def roles(g: Geometry) -> tuple[Role, ...]:
    """The warps of a CTA by what they do."""
    if not g.specialized:
        return (Role("warpgroup", 0, 4, "loads, multiplies and stores in turn"),)
    split = g.spec.warps.registers
    return (
        Role(
            name="consumer",
            first_warp=0,
            warps=4 * g.consumers,
            does="multiply, then store their rows of D",
            registers=split and split.consumer,
        ),
        Role(
            name="producer",
            first_warp=4 * g.consumers,
            warps=g.producer_warps,
            does="one elected thread keeps the ring full",
            registers=split and split.producer,
        ),
    )


def launch(g: Geometry, smem: SmemMap) -> Launch:
    """Block, cluster and shared memory of the launch."""
    kind = g.spec.schedule.kind
    dims = (g.cluster_m, g.cluster_n, 1) if kind == "grid" else (g.cluster, 1, 1)
    return Launch(
        g.threads, dims, g.spec.schedule.ctas_per_sm, g.launch_registers, smem_request(g.arch, g.residents, smem)
    )
