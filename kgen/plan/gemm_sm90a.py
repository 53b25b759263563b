"""GEMM on Hopper: from the user's choices to resources.

wgmma reads both operands from shared memory in 128-byte swizzled rows (PTX ISA, wgmma matrix descriptor), so a k tile
is 64 elements deep; accumulators stay in the registers of the warpgroup that multiplies.
"""

from __future__ import annotations

from kgen.arch import ARCHS, Arch
from kgen.errors import PlanError, Refusal
from kgen.plan.common import GemmPlan
from kgen.plan.resources import (
    DTYPES,
    Arriver,
    Barrier,
    Constant,
    Delivery,
    Launch,
    Pipeline,
    Role,
    SmemMap,
    SmemRegion,
    TensorMap,
)
from kgen.spec.gemm import GemmSpec

SWIZZLE_BYTES = 128  # one row of a swizzled tile; eight rows make the 1024-byte pattern
PATTERN_BYTES = 8 * SWIZZLE_BYTES
WARPGROUP = 128
ROWS_PER_WARP = 16  # a warp holds 16 of the 64 rows of a wgmma accumulator
# Registers a consumer needs beside its accumulators: addresses, descriptors, loop state (seen in ptxas reports).
REGISTER_OVERHEAD = 32
# ptxas refuses a wgmma whose accumulators and addresses exceed the registers at launch (C7602: 128 want 154).
WGMMA_OVERHEAD = 26
MAX_BOX = 256  # rows of a TMA box (cuTensorMapEncodeTiled, boxDim)


def make_plan(spec: GemmSpec) -> GemmPlan:
    """Derive the plan of `spec`; raises PlanError with every limit that the spec exceeds."""
    return _Planner(spec, ARCHS[spec.arch]).plan()


class _Planner:
    def __init__(self, spec: GemmSpec, arch: Arch):
        self.spec, self.arch = spec, arch
        self.input, self.output = DTYPES[spec.dtype.input], DTYPES[spec.dtype.output]
        self.specialized = spec.warps.roles == "specialized"
        self.staged = spec.epilogue.store == "tma"
        self.tma = spec.load == "tma"
        self.consumers = spec.warps.consumers
        self.stages = spec.pipeline.stages
        self.cluster = spec.cluster.size
        self.share_a, self.share_b = (spec.cluster.multicast == side for side in "ab")
        self.block_m = self.consumers * spec.tile.m
        self.block_n = spec.tile.n
        # setmaxnreg acts on whole warpgroups; without it one warp is producer enough.
        self.producer_warps = 0 if not self.specialized else 4 if spec.warps.registers else 1
        self.threads = 32 * (4 * self.consumers + self.producer_warps)
        self.store_columns = SWIZZLE_BYTES // self.output.bytes

    def plan(self) -> GemmPlan:
        refusals = [*self._shape_limits(), *self._register_limits()]
        smem = self._smem(self.stages)
        refusals += self._smem_limits(smem)
        if refusals:
            raise PlanError(refusals)
        s = self.spec
        return GemmPlan(
            family="gemm",
            name=s.name,
            about=" ".join(s.about.split()),
            arch=self.arch,
            skeleton=f"gemm/{self.arch.folder}/{s.warps.roles}.cu",
            parts=self._parts(),
            parameters=self._parameters(),
            constants=self._constants(smem),
            smem=smem,
            pipelines=self._pipelines(),
            roles=self._roles(),
            tensor_maps=self._tensor_maps(),
            launch=self._launch(smem),
            input=self.input,
            headers=tuple(sorted({d.header for d in (self.input, self.output) if d.header})),
            output=self.output,
            wgmma_n=s.tile.n,
            split_registers=s.warps.registers is not None,
            cta_tile=(self.block_m, self.block_n, s.tile.k),
            cluster_tile=(
                self.block_m * (self.cluster if self.share_b else 1),
                self.block_n * (self.cluster if self.share_a else 1),
            ),
            stages=self.stages,
            k_tiles=1 if s.k_loop == "once" else None,
            schedule=s.schedule.kind,
            group_m=s.schedule.group_m,
            ctas=None if s.schedule.ctas == "auto" else s.schedule.ctas,
            problem=(s.problem.m, s.problem.n, s.problem.k),
        )

    # --- limits ------------------------------------------------------------------------------------------------

    def _shape_limits(self):
        if self.tma and self.block_m > MAX_BOX:
            yield Refusal(
                "tile.m",
                f"{self.consumers} consumers x {self.spec.tile.m} rows = {self.block_m} rows of A in one TMA box; "
                f"a box has at most {MAX_BOX}",
                f"set tile.m: {MAX_BOX // self.consumers // 64 * 64}",
            )
        if self.staged and self.block_n % self.store_columns:
            down = self.block_n // self.store_columns * self.store_columns
            up = down + self.store_columns
            near = [str(n) for n in (down, up) if 0 < n <= MAX_BOX]
            yield Refusal(
                "tile.n",
                f"{self.block_n} columns of {self.output.name} are no whole number of {SWIZZLE_BYTES}-byte store boxes "
                f"of {self.store_columns} columns",
                f"set tile.n: {' or '.join(near)}, or epilogue.store: direct",
            )
        rows, operand, field = (
            (self.block_n, "B", "tile.n") if self.share_b else (self.block_m, "A", "tile.m")
        )
        if self.cluster > 1 and rows % (8 * self.cluster):
            step = 8 * self.cluster
            yield Refusal(
                field,
                f"{rows} rows of {operand} split over {self.cluster} CTAs leave slices that are no whole 8-row "
                "swizzle pattern",
                f"nearest: {max(step, rows // step * step)}",
            )

    def _register_limits(self):
        accumulators = self.spec.tile.m // 64 * self.spec.tile.n // 2
        need = accumulators + REGISTER_OVERHEAD
        split = self.spec.warps.registers
        have, whose = self._launch_registers(), "warps.consumers"
        if split:
            total = WARPGROUP * (split.producer + self.consumers * split.consumer)
            pool = self.threads * self._launch_registers()
            have, whose = split.consumer, "warps.registers.consumer"
            if total > pool:
                fit = (pool // WARPGROUP - split.producer) // self.consumers // 8 * 8
                yield Refusal(
                    "warps.registers",
                    f"{WARPGROUP} x ({split.producer} + {self.consumers} x {split.consumer}) = {total} registers; "
                    f"{self.threads} threads launch with {pool}",
                    f"set consumer: {fit}" if fit >= need else "take fewer consumers or a smaller tile",
                )
        floor = self.spec.tile.n // 2 + WGMMA_OVERHEAD
        if split and floor > self._launch_registers():
            fit = (self._launch_registers() - WGMMA_OVERHEAD) * 2 // 64 * 64
            yield Refusal(
                "tile.n",
                f"one wgmma of {self.spec.tile.n} columns names {self.spec.tile.n // 2} registers and ptxas wants "
                f"{floor} at launch, before setmaxnreg; {self.threads} threads x {self.spec.schedule.ctas_per_sm} CTAs "
                f"launch with {self._launch_registers()}",
                f"set tile.n: {fit}, or fewer consumers or CTAs per SM",
            )
        elif need > min(have, self.arch.max_registers_per_thread + 1):
            fit = max(8, (min(have, 255) - REGISTER_OVERHEAD) * 2 // (self.spec.tile.m // 64) // 64 * 64)
            yield Refusal(
                "tile.n",
                f"a {self.spec.tile.m}x{self.spec.tile.n} accumulator takes {accumulators} registers per thread and "
                f"about {REGISTER_OVERHEAD} more are needed; {whose} leaves {have}",
                f"set tile.n: {fit}, or tile.m: 64",
            )

    def _launch_registers(self) -> int:
        """Registers per thread that the launch bounds allow (allocated in steps of 8)."""
        share = self.arch.registers_per_sm // (self.threads * self.spec.schedule.ctas_per_sm)
        return min(self.arch.max_registers_per_thread, share // 8 * 8)

    def _smem_limits(self, smem: SmemMap):
        per_sm = self.arch.smem_per_sm // self.spec.schedule.ctas_per_sm - self.arch.smem_reserved_per_cta
        room = min(self.arch.smem_per_cta, per_sm)
        if smem.bytes <= room:
            return
        fits = max((s for s in range(1, self.stages) if self._smem(s).bytes <= room), default=0)
        who = f"{self.arch.name} has {room:,} B"
        if self.spec.schedule.ctas_per_sm > 1:
            who += f" for each of {self.spec.schedule.ctas_per_sm} CTAs per SM"
        one = self._stage_bytes()
        yield Refusal(
            "pipeline.stages",
            f"{self.stages} stages x {one:,} B + {smem.bytes - self.stages * one:,} B of staging and barriers = "
            f"{smem.bytes:,} B of shared memory; {who}",
            f"at most {fits} fit" if fits else "no stage fits: take a smaller tile or fewer CTAs per SM",
        )

    # --- shared memory -----------------------------------------------------------------------------------------

    def _stage_bytes(self) -> int:
        return (self.block_m + self.block_n) * self.spec.tile.k * self.input.bytes

    def _smem(self, stages: int) -> SmemMap:
        k = self.spec.tile.k
        ring = ("STAGES",) if self.tma else ()
        wanted = [
            ("a", "Input", (*ring, "BLOCK_M * BLOCK_K"), stages * self.block_m * k * self.input.bytes, "k tiles of A"),
            ("b", "Input", (*ring, "BLOCK_N * BLOCK_K"), stages * self.block_n * k * self.input.bytes, "k tiles of B"),
        ]
        if self.staged:
            warps = 4 * self.consumers
            each = ROWS_PER_WARP * SWIZZLE_BYTES
            store_warps = "4 * NUM_CONSUMERS" if self.specialized else "4"
            wanted.append(
                (
                    "d",
                    "Output",
                    (store_warps, "STAGING", "STORE_ROWS * STORE_COLUMNS"),
                    warps * self.spec.epilogue.staging * each,
                    "D on its way out, private to each warp",
                )
            )
        if self.tma:
            wanted.append(("full", "uint64_t", ("STAGES",), 8 * stages, "k tile has landed"))
        if self.specialized:
            wanted.append(("empty", "uint64_t", ("STAGES",), 8 * stages, "k tile has been read"))
        regions, offset = [], 0
        for name, ctype, extents, size, why in wanted:
            regions.append(SmemRegion(name, ctype, extents, offset, size, why))
            offset += size
        return SmemMap(tuple(regions), PATTERN_BYTES)

    # --- hand-overs --------------------------------------------------------------------------------------------

    def _pipelines(self) -> tuple[Pipeline, ...]:
        if not self.tma:
            return ()
        loader, reader = ("producer", "consumer") if self.specialized else ("warpgroup", "warpgroup")
        full = Barrier(
            "full",
            self.stages,
            (Arriver(loader, 1, "elected"),),
            waiter=reader,
            first_parity=0,
            why="the loader announces the bytes, the TMA engine delivers them",
            deliveries=tuple(
                Delivery(t.operand, self._copies(t.operand), t.box_bytes) for t in self._load_maps()
            ),
        )
        empty = None
        if self.specialized:
            empty = Barrier(
                "empty",
                self.stages,
                (Arriver(reader, 4 * self.consumers, "warp", ctas=self.cluster),),
                waiter=loader,
                first_parity=1,
                why="every warp that multiplied the k tile has seen its wgmma group complete",
            )
        return (Pipeline("operands", self.stages, ("a", "b"), loader, reader, full, empty),)

    def _copies(self, operand: str) -> int:
        """Boxes of an operand that land in one CTA per k tile: its own, and its peers' slices where it is shared."""
        shared = (operand == "a" and self.share_a) or (operand == "b" and self.share_b)
        return self.cluster if shared else 1

    def _load_maps(self) -> list[TensorMap]:
        k, cluster = self.spec.tile.k, self.cluster
        rows_a = self.block_m // (cluster if self.share_a else 1)
        rows_b = self.block_n // (cluster if self.share_b else 1)
        make = lambda name, op, rows, stride, box, expr: TensorMap(  # noqa: E731
            name, op, rows, "k", stride, box, k, expr, "BLOCK_K", self.input.tensor_map, self.input.bytes
        )
        return [
            make("map_a", "a", "m", "lda", rows_a, "A_SLICE" if self.share_a else "BLOCK_M"),
            make("map_b", "b", "n", "ldb", rows_b, "B_SLICE" if self.share_b else "BLOCK_N"),
        ]

    def _tensor_maps(self) -> tuple[TensorMap, ...]:
        maps = self._load_maps() if self.tma else []
        if self.staged:
            maps.append(
                TensorMap(
                    "map_d", "d", "m", "n", "ldd", ROWS_PER_WARP, self.store_columns, "STORE_ROWS", "STORE_COLUMNS",
                    self.output.tensor_map, self.output.bytes,
                )
            )  # fmt: skip
        return tuple(maps)

    def _roles(self) -> tuple[Role, ...]:
        if not self.specialized:
            return (Role("warpgroup", 0, 4, "loads, multiplies and stores in turn"),)
        split = self.spec.warps.registers
        return (
            Role("consumer", 0, 4 * self.consumers, "multiply, then store their rows of D", split and split.consumer),
            Role("producer", 4 * self.consumers, self.producer_warps, "one elected thread keeps the ring full", split and split.producer),
        )

    def _launch(self, smem: SmemMap) -> Launch:
        kind = self.spec.schedule.kind
        along_m = self.cluster if self.share_b else 1
        along_n = self.cluster if self.share_a else 1
        dims = (along_m, along_n, 1) if kind == "grid" else (self.cluster, 1, 1)
        return Launch(
            self.threads, dims, self.spec.schedule.ctas_per_sm, self._launch_registers(), self._smem_request(smem)
        )

    def _smem_request(self, smem: SmemMap) -> int:
        """Dynamic shared memory asked for at launch: the storage, or as much as keeps further CTAs off the SM."""
        arch, residents = self.arch, self.spec.schedule.ctas_per_sm
        one_more = arch.smem_per_sm // (residents + 1) - arch.smem_reserved_per_cta
        exclude = (one_more // PATTERN_BYTES + 1) * PATTERN_BYTES
        return max(smem.bytes, exclude)

    # --- wording -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, str]:
        """The template file for each slot of the skeleton; a slot that a kernel lacks is absent."""
        s = self.spec
        common, arch = "gemm/common", f"gemm/{self.arch.folder}"
        clustered = self.cluster > 1
        shared = f"_share_{s.cluster.multicast}" if clustered else ""
        wide = "_cluster" if clustered and s.schedule.kind == "persistent" else ""
        parts = {
            "schedule": f"{common}/schedule/{s.schedule.kind}{wide}.cu",
            "mma": f"{arch}/mma.cu",
            "store": f"{arch}/store/{s.epilogue.store}.cu",
            "store_call": f"{arch}/store/{s.epilogue.store}_call.cu",
            "grid": f"{common}/launcher/grid_{s.schedule.kind}{wide or shared}.cu",
        }
        if s.schedule.kind == "persistent":
            parts["order"] = f"{common}/order/{shared.strip('_') or 'cta'}.cu"
            parts["ctas"] = f"{common}/launcher/ctas_{'auto' if s.schedule.ctas == 'auto' else 'fixed'}.cu"
        if s.schedule.kind == "single":
            parts["limit"] = f"{common}/launcher/limit_one_{'k_tile' if s.k_loop == 'once' else 'tile'}.cu"
        if self.staged:
            parts["stage"] = f"{arch}/store/stage_{8 * self.output.bytes}bit.cu"
        if self.tma:
            parts["sync"] = f"{arch}/sync/{'cluster' if clustered else 'cta'}.cu"
        if clustered:
            parts["leave"] = f"{arch}/sync/leave_cluster.cu"
            parts["slice"] = f"{arch}/role/slice_{s.cluster.multicast}.cu"
        if self.specialized:
            parts["fill"] = f"{arch}/role/fill{shared}.cu"
            parts["release"] = f"{arch}/role/release_{'cluster' if clustered else 'cta'}.cu"
        else:
            loop = "ring" if self.stages > 1 else s.k_loop
            parts["mainloop"] = f"{arch}/mainloop/{s.load}_{loop}.cu"
            parts["load"] = f"{arch}/load/{s.load}.cu"
        return parts

    def _parameters(self) -> tuple[str, ...]:
        """The kernel's parameters, by name, in order."""
        loads = ("map_a", "map_b") if self.tma else ("a", "lda", "b", "ldb")
        stores = ("map_d", "d", "ldd") if self.staged else ("d", "ldd")
        return (*loads, *stores, "m", "n", "k")

    def _constants(self, smem: SmemMap) -> tuple[tuple[Constant, ...], ...]:
        cta = (*self._schedule_constants(smem), *self._thread_constants())
        groups = (self._tile_constants(), self._ring_constants(), cta)
        return tuple(tuple(g) for g in groups if g)

    def _tile_constants(self):
        tile, C = self.spec.tile, Constant
        rows = "BLOCK_M"
        if self.specialized:
            rows = "CONSUMER_M"
            yield C("NUM_CONSUMERS", str(self.consumers), self.consumers, "warpgroups that multiply and store")
            yield C("CONSUMER_M", str(tile.m), tile.m, "rows of D per consumer")
            yield C("BLOCK_M", "NUM_CONSUMERS * CONSUMER_M", self.block_m, "rows of D per CTA")
        else:
            yield C("BLOCK_M", str(tile.m), tile.m, "rows of D per CTA")
        yield C("BLOCK_N", str(tile.n), tile.n, "columns of D per CTA; one wgmma spans them")
        yield C("BLOCK_K", str(tile.k), tile.k, "depth of a k tile: one 128-byte swizzled row")
        yield C("M_BLOCKS", f"{rows} / 64", tile.m // 64, "wgmma works on 64 rows")

    def _ring_constants(self):
        C = Constant
        if self.tma:
            yield C("STAGES", str(self.stages), self.stages, "k tiles in shared memory")
            yield C("STAGE_BYTES", "(BLOCK_M + BLOCK_N) * BLOCK_K * sizeof(Input)", self._stage_bytes(),
                    "what one phase of `full` waits for")  # fmt: skip
        if self.specialized:
            expr = "4 * NUM_CONSUMERS" + (" * CLUSTER_SIZE" if self.cluster > 1 else "")
            why = "every consumer warp" + (" that shares the stage" if self.cluster > 1 else "")
            if self.cluster > 1:
                yield from self._cluster_constants()
            yield C("EMPTY_ARRIVALS", expr, 4 * self.consumers * self.cluster, why)

    def _cluster_constants(self):
        C, n = Constant, self.cluster
        along_m, along_n = (n, 1) if self.share_b else (1, n)
        side, block, rows = ("B", "BLOCK_N", self.block_n) if self.share_b else ("A", "BLOCK_M", self.block_m)
        place = "stacked along M; they share B" if self.share_b else "side by side along N; they share A"
        tile_m, tile_n = (f"CLUSTER_SIZE * {b}" if x else b for b, x in (("BLOCK_M", self.share_b), ("BLOCK_N", self.share_a)))
        yield C("CLUSTER_SIZE", str(n), n, f"CTAs {place}")
        yield C("ALL_CTAS", "(1 << CLUSTER_SIZE) - 1", (1 << n) - 1, "multicast mask")
        yield C("TILE_M", tile_m, along_m * self.block_m, "rows of D per cluster")
        yield C("TILE_N", tile_n, along_n * self.block_n, "columns of D per cluster")
        yield C(f"{side}_SLICE", f"{block} / CLUSTER_SIZE", rows // n, f"rows of {side} that each CTA loads for all")

    def _schedule_constants(self, smem: SmemMap):
        schedule, C = self.spec.schedule, Constant
        yield C("CTAS_PER_SM", str(schedule.ctas_per_sm), schedule.ctas_per_sm, "resident together: no fewer, no more")
        request = self._smem_request(smem)
        why = "asked for: more than is used, so that no further CTA fits" if request > smem.bytes else "dynamic"
        yield C("SMEM_BYTES", str(request), request, why)
        yield C("SMEM_ALIGNMENT", str(PATTERN_BYTES), PATTERN_BYTES, "the 128-byte swizzle starts anew every 1024 bytes")
        if schedule.kind == "persistent":
            yield C("GROUP_M", str(schedule.group_m), schedule.group_m, "rows of tiles walked before the next column")
            if schedule.ctas != "auto":
                yield C("NUM_CTAS", str(schedule.ctas), schedule.ctas, "launched, unless there are fewer tiles")

    def _thread_constants(self):
        C = Constant
        if self.specialized:
            warps, whole = self.producer_warps, "setmaxnreg acts on a whole warpgroup"
            yield C("PRODUCER_WARPS", str(warps), warps, whole if warps == 4 else "one thread of it issues every load")
            yield C("NUM_THREADS", "32 * (4 * NUM_CONSUMERS + PRODUCER_WARPS)", self.threads)
        else:
            yield C("NUM_THREADS", "128", 128, "one warpgroup")
        if split := self.spec.warps.registers:
            yield C("PRODUCER_REGISTERS", str(split.producer), split.producer, "per thread; a copy loop needs few")
            yield C("CONSUMER_REGISTERS", str(split.consumer), split.consumer, "per thread; room for accumulators")
        if self.staged:
            yield C("STORE_ROWS", str(ROWS_PER_WARP), ROWS_PER_WARP, "of 64 that a warp holds")
            yield C("STORE_COLUMNS", "128 / sizeof(Output)", self.store_columns, "one 128-byte swizzled row")
            yield C("STORE_STEP", "16 / sizeof(Output)", 16 // self.output.bytes, "where a TMA store can end")
            yield C("STAGING", str(self.spec.epilogue.staging), self.spec.epilogue.staging, "store boxes per warp")
