"""Sizes that the rest of the plan is made of, all derived from one spec."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.plan.geometry import GemmGeometry
from kgen.spec.gemm.sm90a import Spec

ROWS_PER_WARP = 16  # a warp holds 16 of the 64 rows of a wgmma accumulator


@dataclass(frozen=True)
class Geometry(GemmGeometry):
    """A GEMM on Hopper: who there is, and how much of what each has. Sizes in elements unless named bytes."""

    spec: Spec

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
    def stage_bytes(self) -> int:
        """One k tile of A and one of B."""
        return (self.block_m + self.block_n) * self.spec.tile.k * self.input.bytes
