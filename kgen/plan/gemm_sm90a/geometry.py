"""Sizes that the rest of the plan is made of, all derived from one spec."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.arch import Arch
from kgen.plan.epilogue import Finish, finish
from kgen.plan.registers import registers_at_launch
from kgen.plan.resources import DTYPES, Dtype
from kgen.spec.gemm.sm90a import Spec

SWIZZLE_BYTES = 128  # one row of a swizzled tile; eight rows make the pattern
PATTERN_BYTES = 8 * SWIZZLE_BYTES
WARPGROUP = 128
ROWS_PER_WARP = 16  # a warp holds 16 of the 64 rows of a wgmma accumulator


@dataclass(frozen=True)
class Geometry:
    """A GEMM on Hopper: who there is, and how much of what each has. Sizes in elements unless named bytes."""

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
    def consumers(self) -> int:
        return self.spec.warps.consumers

    @property
    def producer_warps(self) -> int:
        """setmaxnreg acts on whole warpgroups; without it one warp is producer enough."""
        if not self.specialized:
            return 0
        return 4 if self.spec.warps.registers else 1

    @property
    def threads(self) -> int:
        return 32 * (4 * self.consumers + self.producer_warps)

    @property
    def stages(self) -> int:
        return self.spec.pipeline.stages

    @property
    def residents(self) -> int:
        """CTAs that share an SM."""
        return self.spec.schedule.ctas_per_sm

    @property
    def cluster(self) -> int:
        return self.spec.cluster.size

    @property
    def share_a(self) -> bool:
        return self.spec.cluster.multicast == "a"

    @property
    def share_b(self) -> bool:
        return self.spec.cluster.multicast == "b"

    @property
    def cluster_m(self) -> int:
        """CTAs of a cluster along M."""
        return self.cluster if self.share_b else 1

    @property
    def cluster_n(self) -> int:
        """CTAs of a cluster along N."""
        return self.cluster if self.share_a else 1

    @property
    def block_m(self) -> int:
        """Rows of D per CTA."""
        return self.consumers * self.spec.tile.m

    @property
    def block_n(self) -> int:
        """Columns of D per CTA."""
        return self.spec.tile.n

    @property
    def store_columns(self) -> int:
        """Columns of a store box: one swizzled row."""
        return SWIZZLE_BYTES // self.output.bytes

    @property
    def stage_bytes(self) -> int:
        """One k tile of A and one of B."""
        return (self.block_m + self.block_n) * self.spec.tile.k * self.input.bytes

    @property
    def launch_registers(self) -> int:
        """Registers per thread that the launch bounds allow."""
        return registers_at_launch(self.arch, self.threads, self.residents)
