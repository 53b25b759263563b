"""Sizes that the rest of the plan is made of, all derived from one spec."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.plan.geometry import SWIZZLE_BYTES, WARPGROUP, GemmGeometry
from kgen.plan.resources import DTYPES, Dtype, Scales
from kgen.spec.gemm.sm100a import Spec

LANES = 128  # of tensor memory: one row of an accumulator each
ROWS_PER_WARP = 32  # a warp reads the lanes of its own quarter
MMA_K_BYTES = 32  # of each operand row per instruction
ANSWER_BYTES = 16  # of launch control
ANSWERS = 2  # of launch control at a time: the next one is asked for while slow roles still read
BOX_MN = 64  # rows of a 16-bit operand that lie in one swizzled row, where it is contiguous along them
KINDS = {
    ("bf16", "none"): "f16",
    ("fp16", "none"): "f16",
    ("tf32", "none"): "tf32",
    ("e4m3", "none"): "f8f6f4",
    ("e5m2", "none"): "f8f6f4",
    ("e4m3", "block32"): "mxf8f6f4",
    ("e5m2", "block32"): "mxf8f6f4",
    ("e2m1", "block32"): "mxf4",
    ("e2m1", "block16"): "mxf4nvf4",
}
DIRECT_CHUNK = 32  # columns in registers at a time where nothing else asks for a width
MAX_CHUNK = 64  # with 128 of them, an epilogue of a few steps spills


@dataclass(frozen=True)
class Geometry(GemmGeometry):
    """A GEMM on Blackwell: who there is, and how much of what each has. Sizes in elements unless named bytes."""

    spec: Spec

    @property
    def other(self) -> Dtype | None:
        """B's element type where it is not A's."""
        b = self.spec.dtype.b
        return None if b in ("same", self.spec.dtype.input) else DTYPES[b]

    @property
    def kind(self) -> str:
        """Of tcgen05.mma."""
        return KINDS[self.input.name, self.spec.dtype.scales]

    @property
    def units_k(self) -> int:
        """Depth of a k tile in what the kernel addresses; k in elements is `packed` times that."""
        return SWIZZLE_BYTES // self.input.bytes

    @property
    def block_k(self) -> int:
        """Depth of a k tile in elements."""
        return self.units_k * self.input.packed

    @property
    def scales(self) -> Scales | None:
        if (name := self.spec.dtype.scales) == "none":
            return None
        block = int(name.removeprefix("block"))
        per_step = MMA_K_BYTES // self.input.bytes * self.input.packed // block
        return Scales({32: "ue8m0", 16: "ue4m3"}[block], block, per_step, self.block_k // block // 4)

    @property
    def scale_atoms(self) -> tuple[int, int]:
        """Atoms of scales that a CTA holds of each k tile: A's of its own rows, B's of all columns."""
        if not self.scales:
            return 0, 0
        rows = Scales.ATOM_ROWS
        return self.block_m // rows * self.scales.atoms, self.block_n // rows * self.scales.atoms

    @property
    def scale_columns(self) -> int:
        """Of tensor memory, per consumer: a consumer's MMAs are in order with its own copies only."""
        if not self.scales:
            return 0
        return self.scales.atoms * Scales.ATOM_COLUMNS * (1 + self.block_n // Scales.ATOM_ROWS)

    @property
    def transposed(self) -> tuple[bool, bool]:
        """Whether A and B are contiguous along m and n."""
        return self.spec.layout.a == "m", self.spec.layout.b == "n"

    @property
    def persistent(self) -> bool:
        return self.spec.schedule.kind == "persistent"

    @property
    def clc(self) -> bool:
        """Whether launch control hands out the tiles."""
        return self.spec.schedule.kind == "clc"

    @property
    def accumulators(self) -> int:
        """Accumulators of one consumer."""
        return self.spec.pipeline.accumulators

    @property
    def store_warps(self) -> int:
        return 4 * self.consumers

    @property
    def mma_warp(self) -> int:
        """The first warp that issues MMAs; it also allocates tensor memory."""
        return self.store_warps if self.specialized else 0

    @property
    def producer_warp(self) -> int:
        return self.mma_warp + self.consumers

    @property
    def control_warps(self) -> int:
        """Warps with something to do that is not storing: issuers, the producer, perhaps a scheduler."""
        return self.consumers + 1 + self.clc

    @property
    def idle_warps(self) -> int:
        """setmaxnreg acts on whole warpgroups, so that with a split the control warps fill one."""
        return 4 - self.control_warps if self.spec.warps.registers else 0

    @property
    def threads(self) -> int:
        if not self.specialized:
            return WARPGROUP
        return 32 * (self.store_warps + self.control_warps + self.idle_warps)

    @property
    def group(self) -> int:
        """CTAs that multiply together: 2 for a pair."""
        return self.spec.cluster.cta_group

    @property
    def b_rows(self) -> int:
        """Rows of B that one CTA holds: the pair splits them."""
        return self.block_n // self.group

    @property
    def mma_m(self) -> int:
        return self.group * self.spec.tile.m

    @property
    def mma_k(self) -> int:
        """Depth of one MMA in elements."""
        return MMA_K_BYTES // self.input.bytes * self.input.packed

    @property
    def chunk(self) -> int:
        """Columns of an accumulator that a thread reads at a time: where D is staged a store box, or half of one."""
        return min(MAX_CHUNK, self.store_columns) if self.staged else DIRECT_CHUNK

    @property
    def box_extent(self) -> str:
        """The constant that names a store box's columns."""
        return "CHUNK" if self.chunk == self.store_columns else "STORE_COLUMNS"

    @property
    def stage_bytes(self) -> int:
        """One k tile of A and one of B with their scales, of one CTA."""
        return (self.block_m + self.b_rows) * SWIZZLE_BYTES + sum(self.scale_atoms) * Scales.ATOM_BYTES

    @property
    def acc_slots(self) -> int:
        """Accumulators of the CTA."""
        return self.consumers * self.accumulators
