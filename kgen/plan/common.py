"""The plan of one kernel: everything that follows from a spec, and which template says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgen.arch import Arch
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

    split_k: int = 1  # parts of K that are summed through a workspace

    @property
    def pair(self) -> bool:
        """Whether two CTAs multiply as one."""
        return self.cta_group == 2

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
    def one_tile(self) -> bool:
        """Whether the kernel computes a single tile of D and refuses more."""
        return self.schedule == "single"
