"""One k tile of one CTA, in cycles of its SM: how long each unit is busy with it, and how long the ring makes it wait.

Pure: plan and rates -> KTile. The model is of CTAs that are alone on their SM, as all presets are.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.plan.common import GemmPlan
from kgen.static.rates import Rates

LANES = 128  # rows of an accumulator in one CTA
LOAD_BYTES = 16  # that a thread copies at a time


@dataclass(frozen=True)
class KTile:
    """Bytes and cycles. `written` reaches shared memory from L2, `read` is what the MMAs take from it."""

    written: int
    read: int
    mma: float
    smem: float
    l2: float
    stages: int
    rounds: int  # latencies in sequence per stage: 1 for TMA

    @property
    def flow(self) -> float:
        """Cycles between k tiles if every load arrived in time."""
        return max(self.mma, self.smem, self.l2)

    def ring(self, latency: float) -> float:
        """Cycles between k tiles that the ring allows: a stage is asked for, lands, and is multiplied before it can be
        asked for again (Little's law)."""
        return (self.rounds * latency + self.mma) / self.stages

    def period(self, latency: float) -> float:
        return max(self.flow, self.ring(latency))

    def needed(self, latency: float) -> float:
        """Stages with which the ring would not be what limits."""
        return (self.rounds * latency + self.mma) / self.flow


def k_tile(plan: GemmPlan, rates: Rates) -> KTile:
    """From the plan's tile; raises ValueError for several CTAs per SM, whose k tiles interleave, and for elements that
    are not of 16 bits."""
    if plan.kind != "f16":
        raise ValueError(f"{plan.name}: kind {plan.kind}; the model's rates are those of 16-bit elements")
    if plan.launch.ctas_per_sm != 1:
        raise ValueError(f"{plan.name}: {plan.launch.ctas_per_sm} CTAs share an SM; the model is of one")
    rows, columns, depth = plan.cta_tile
    row_bytes = depth * plan.input.bytes
    slice_ = columns // plan.cta_group  # a pair splits B: each SM holds and reads half
    consumers = rows // LANES
    written, read = (rows + slice_) * row_bytes, consumers * (LANES + slice_) * row_bytes
    loads_itself = not any(t.operand in "ab" for t in plan.tensor_maps)
    return KTile(
        written=written,
        read=read,
        mma=2 * rows * columns * depth / rates.mma_flops,
        smem=(written + read) / rates.smem_bytes,
        l2=written / rates.l2_bytes,
        stages=plan.stages,
        rounds=written // (plan.launch.threads * LOAD_BYTES) if loads_itself else 1,
    )
