"""How fast one SM of a B200 does each thing: what the arithmetic of the model stands on.

Each number says where it comes from. An assumption is one that no public document of the vendor settles; whoever has
a card should measure it and change it here, and the page follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.arch import SM_100A, Arch

PARTITIONS = 4  # of an SM; each of a warpgroup's warps reads the tensor memory of its own


@dataclass(frozen=True)
class Rates:
    """Per SM and clock cycle unless said otherwise. `latency_ns` spans what a load may take, asked to landed."""

    arch: Arch
    mma_flops: int
    smem_bytes: int
    l2_bytes: int
    tmem_lanes: int  # per partition, 4 bytes each
    latency_ns: tuple[int, int]

    @property
    def clock(self) -> float:
        """The clock at which the datasheet's peak holds, in Hz."""
        return self.arch.peak_flops_16bit / (self.arch.sm_count * self.mma_flops)

    def cycles(self, ns: float) -> float:
        return ns * 1e-9 * self.clock


B200 = Rates(
    arch=SM_100A,
    mma_flops=8192,
    smem_bytes=128,
    l2_bytes=64,
    tmem_lanes=16,
    latency_ns=(800, 1000),
)
