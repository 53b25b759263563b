"""Sizes that the rest of the plan is made of, all derived from one spec."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.arch import Arch
from kgen.plan.epilogue import Finish, finish
from kgen.plan.resources import DTYPES, Dtype
from kgen.spec.gemm.sm100a import Spec

SWIZZLE_BYTES = 128  # one row of a swizzled tile; eight rows make the pattern
PATTERN_BYTES = 8 * SWIZZLE_BYTES
WARPGROUP = 128
LANES = 128  # of tensor memory: one row of an accumulator each
ROWS_PER_WARP = 32  # a warp reads the lanes of its own quarter
MMA_K_BYTES = 32  # of each operand row per instruction
DIRECT_CHUNK = 32  # columns in registers at a time where nothing else asks for a width


@dataclass(frozen=True)
class Geometry:
    """A GEMM on Blackwell: who there is, and how much of what each has. Sizes in elements unless named bytes."""

    spec: Spec
    arch: Arch

    @property
    def input(self) -> Dtype:
        return DTYPES[self.spec.dtype.input]

    @property
    def output(self) -> Dtype:
        return DTYPES[self.spec.dtype.output]

    @property
    def finish(self) -> Finish | None:
        return finish(self.spec.epilogue.ops)

    @property
    def out_n(self) -> int:
        """Columns of D per CTA: pairs of the product's become one."""
        return self.block_n // 2 if self.finish and self.finish.pairing else self.block_n

    @property
    def specialized(self) -> bool:
        return self.spec.warps.roles == "specialized"

    @property
    def tma(self) -> bool:
        """Whether A and B are loaded through TMA."""
        return self.spec.load == "tma"

    @property
    def staged(self) -> bool:
        """Whether D leaves through shared memory and TMA."""
        return self.spec.epilogue.store == "tma"

    @property
    def persistent(self) -> bool:
        return self.spec.schedule.kind == "persistent"

    @property
    def consumers(self) -> int:
        return self.spec.warps.consumers

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
    def idle_warps(self) -> int:
        """setmaxnreg acts on whole warpgroups, so that with a split the control warps fill one."""
        busy = self.consumers + 1
        return 4 - busy if self.spec.warps.registers else 0

    @property
    def threads(self) -> int:
        if not self.specialized:
            return WARPGROUP
        return 32 * (self.store_warps + self.consumers + 1 + self.idle_warps)

    @property
    def stages(self) -> int:
        return self.spec.pipeline.stages

    @property
    def residents(self) -> int:
        """CTAs that share an SM."""
        return self.spec.schedule.ctas_per_sm

    @property
    def group(self) -> int:
        """CTAs that multiply together: 2 for a pair."""
        return self.spec.cluster.cta_group

    @property
    def block_m(self) -> int:
        """Rows of D per CTA."""
        return self.consumers * self.spec.tile.m

    @property
    def block_n(self) -> int:
        """Columns of D per CTA."""
        return self.spec.tile.n

    @property
    def b_rows(self) -> int:
        """Rows of B that one CTA holds: the pair splits them."""
        return self.block_n // self.group

    @property
    def mma_m(self) -> int:
        return self.group * self.spec.tile.m

    @property
    def mma_k(self) -> int:
        return MMA_K_BYTES // self.input.bytes

    @property
    def chunk(self) -> int:
        """Columns of an accumulator that a thread reads at a time: a swizzled row of D where D is staged."""
        return SWIZZLE_BYTES // self.output.bytes if self.staged else DIRECT_CHUNK

    @property
    def stage_bytes(self) -> int:
        """One k tile of A and one of B, of one CTA."""
        return (self.block_m + self.b_rows) * self.spec.tile.k * self.input.bytes

    @property
    def acc_slots(self) -> int:
        """Accumulators of the CTA."""
        return self.consumers * self.accumulators

    @property
    def launch_registers(self) -> int:
        """Registers per thread that the launch bounds allow (allocated in steps of 8)."""
        share = self.arch.registers_per_sm // (self.threads * self.residents)
        return min(self.arch.max_registers_per_thread, share // 8 * 8)
