"""Sizes that a GEMM has on either architecture, derived from its spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgen.arch import Arch
from kgen.plan.epilogue import Finish, finish
from kgen.plan.registers import registers_at_launch
from kgen.plan.resources import DTYPES, Dtype

SWIZZLE_BYTES = 128  # one row of a swizzled tile; eight rows make the pattern
PATTERN_BYTES = 8 * SWIZZLE_BYTES
WARPGROUP = 128


@dataclass(frozen=True)
class GemmGeometry:
    """Who there is, and how much of what each has. Sizes in elements unless named bytes.

    An architecture adds `threads`, `stage_bytes` and what only it has.
    """

    spec: Any  # the Spec of the architecture
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
    def stages(self) -> int:
        return self.spec.pipeline.stages

    @property
    def residents(self) -> int:
        """CTAs that share an SM."""
        return self.spec.schedule.ctas_per_sm

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
        """Columns of a store box: a swizzled row of D."""
        return SWIZZLE_BYTES // self.output.bytes

    @property
    def launch_registers(self) -> int:
        """Registers per thread that the launch bounds allow."""
        return registers_at_launch(self.arch, self.threads, self.residents)
