"""The plan of one kernel: everything that follows from a spec, and which template says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgen.arch import Arch
from kgen.plan.epilogue import Finish, Reduced
from kgen.plan.resources import (
    Barrier,
    Constant,
    Dtype,
    Launch,
    Pipeline,
    Role,
    Scales,
    SmemMap,
    TensorMap,
    TensorMemory,
)


@dataclass(frozen=True)
class GemmPlan:
    """Plan of a GEMM kernel. `parts` names the template file chosen for each slot of the skeleton."""

    family: str
    name: str
    about: str
    arch: Arch
    skeleton: str
    parts: Mapping[str, str]
    parameters: tuple[str, ...]  # the kernel's, by name, in order
    constants: tuple[tuple[Constant, ...], ...]  # groups, separated by a blank line in the output
    smem: SmemMap
    pipelines: tuple[Pipeline, ...]
    roles: tuple[Role, ...]
    tensor_maps: tuple[TensorMap, ...]
    launch: Launch
    input: Dtype
    output: Dtype
    headers: tuple[str, ...]  # CUDA headers of the element types
    mma_shape: tuple[int, int, int]  # rows, columns and depth of one tensor-core instruction
    split_registers: bool
    cta_tile: tuple[int, int, int]  # rows and columns of D per CTA, depth of a k tile
    cluster_tile: tuple[int, int]  # rows and columns of D per cluster
    stages: int
    k_tiles: int | None  # the most k tiles it takes; None: any number
    schedule: str
    group_m: int
    ctas: int | None  # None: every SM of the card
    problem: tuple[int, int, int]
    tmem: TensorMemory | None = None  # Blackwell's accumulators; None: they are registers
    cta_group: int = 1  # CTAs whose tensor cores work together
    chunk: int = 0  # columns of an accumulator that a thread reads from tensor memory at a time
    kind: str = "f16"  # of tcgen05.mma
    other: Dtype | None = None  # B's element type where it is not A's
    layout: tuple[str, str] = ("k", "k")  # the contiguous index of A and of B
    scales: Scales | None = None
    split_k: int = 1  # parts of K that are summed through a workspace

    finish: Finish | None = None  # what becomes of each element before it is rounded; None: nothing

    @property
    def pair(self) -> bool:
        """Whether two CTAs multiply as one."""
        return self.cta_group == 2

    @property
    def d_columns(self) -> str:
        """D's width, out of that of the product."""
        return self.finish.columns if self.finish else "n"

    @property
    def pairs(self) -> bool:
        """Whether two neighbouring columns of the product make one of D."""
        return self.finish is not None and self.finish.pairing is not None

    @property
    def reductions(self) -> tuple[Reduced, ...]:
        """What is added up, or raised, along D's rows and columns."""
        return self.finish.reductions if self.finish else ()

    @property
    def out_columns(self) -> int:
        """D's columns per CTA."""
        return self.cta_tile[1] // 2 if self.pairs else self.cta_tile[1]

    @property
    def out_n(self) -> str:
        """The constant that gives D's columns per CTA."""
        return "OUT_N" if self.pairs else "BLOCK_N"

    @property
    def barriers(self) -> tuple[Barrier, ...]:
        return tuple(b for p in self.pipelines for b in p.barriers)

    def workspace_bytes(self, m: int, n: int) -> tuple[int, int]:
        """Of a split of K: the counters at its start, and all of it. As launcher/workspace.cu has it."""
        rows, columns = self.cluster_tile
        strips = -(-m // rows) * (rows // 32) * -(-n // columns)
        counters = -(-strips * 4 // 128) * 128
        return counters, counters + strips * self.split_k * 32 * columns * 4

    @property
    def inputs(self) -> tuple[Dtype, Dtype]:
        """Element types of A and B."""
        return self.input, self.other or self.input

    @property
    def peak_flops(self) -> float:
        """What its architecture's tensor cores do at most for its element types."""
        return self.arch.peak_flops[self.kind]

    def operand_bytes(self, rows: float, k: int) -> float:
        """Of so many rows of A or B, without their scales."""
        return rows * k * self.input.bytes / self.input.packed

    def scale_bytes(self, rows: float, k: int) -> float:
        """Of the block scales of so many rows, without what pads them to whole atoms."""
        return rows * -(-k // self.scales.block) if self.scales else 0

    @property
    def per_unit(self) -> str:
        """What turns a number of elements into one of what the kernel addresses, in C."""
        return f" / {self.input.packed}" if self.input.packed > 1 else ""

    def row_of(self, operand: str) -> str:
        """The extent along which a stored row of A or B runs."""
        return self.layout[operand == "b"]

    def rows_of(self, operand: str) -> str:
        """The extent that numbers the stored rows of A or B."""
        return "mn"[operand == "b"] if self.row_of(operand) == "k" else "k"

    def stored(self, operand: str) -> str:
        """How A or B lies in memory: [m, k], or [k, m]."""
        rows = "mn"[operand == "b"]
        return f"[{rows}, k]" if self.row_of(operand) == "k" else f"[k, {rows}]"

    def index(self, operand: str) -> str:
        """Where main.cu finds element `row`, `k` of A or B."""
        major, minor = ("row", "k") if self.row_of(operand) == "k" else ("k", "row")
        return f"{major} * g.ld{operand} + {minor}"

    @property
    def arrangement(self) -> str:
        if self.layout == ("k", "k"):
            return "A, B and D are row-major"
        return f"stored as A{self.stored('a')}, B{self.stored('b')} and D[m, n]"

    @property
    def turned(self) -> str:
        """Operands stored with k as the row index, in Python."""
        return ", ".join(f'"{o}"' for o, major in zip("ab", self.layout, strict=True) if major != "k")

    @property
    def box_extent(self) -> str:
        """The constant that names the columns of a store box."""
        return next((t.box_columns_expr for t in self.tensor_maps if t.operand == "d"), "")

    @property
    def row_step(self) -> int:
        """Elements of which rows must be a multiple, so that each starts at 16 bytes."""
        return max(8, 16 // self.input.bytes * self.input.packed, 16 // self.output.bytes)

    @property
    def program_headers(self) -> tuple[str, ...]:
        """CUDA headers of what main.cu computes with."""
        names = {d.header for d in (*self.inputs, self.output)}
        if self.scales and self.scales.name == "ue4m3":
            names.add("cuda_fp8.h")
        return tuple(sorted(names - {""}))

    @property
    def input_names(self) -> str:
        """As people write them: bf16, or e4m3 x e5m2, or e2m1 (one ue4m3 per 16)."""
        names = " x ".join(dict.fromkeys(d.name for d in self.inputs))
        return names + (f" with one {self.scales.name} per {self.scales.block} along K" if self.scales else "")

    @property
    def one_tile(self) -> bool:
        """Whether the kernel computes a single tile of D and refuses more."""
        return self.schedule == "single"
