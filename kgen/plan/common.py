"""The plan of one kernel: everything that follows from a spec, and which template says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgen.arch import Arch
from kgen.plan.epilogue import Finish
from kgen.plan.resources import (
    Barrier,
    Constant,
    Dtype,
    Launch,
    Pipeline,
    Role,
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
    finish: Finish | None = None  # what becomes of each element before it is rounded; None: nothing

    @property
    def d_columns(self) -> str:
        """D's width, out of that of the product."""
        return self.finish.columns if self.finish else "n"

    @property
    def pairs(self) -> bool:
        """Whether two neighbouring columns of the product make one of D."""
        return self.finish is not None and self.finish.pairing is not None

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

    @property
    def one_tile(self) -> bool:
        """Whether the kernel computes a single tile of D and refuses more."""
        return self.schedule == "single"
