"""A plan's time for a problem, from its k tiles, epilogues and waves.

What the model leaves out only costs time (launches, instruction issue, barrier round trips, contention in L2, power),
so that its rates are ceilings under its assumptions, not forecasts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kgen.explain import Waves, explain
from kgen.plan.common import GemmPlan
from kgen.static.epilogue import Epilogue, epilogue
from kgen.static.k_tile import KTile, k_tile
from kgen.static.rates import Rates
from kgen.static.traffic import Traffic, traffic


@dataclass(frozen=True)
class Estimate:
    """Times in seconds. `floor` is the tensor pipe's alone, `time` the model's, `bound` what takes most of it."""

    problem: tuple[int, int, int]
    k_tile: KTile
    epilogue: Epilogue
    waves: Waves
    traffic: Traffic
    floor: float
    tile_cycles: float
    time: float
    flops: float
    bound: str

    @property
    def rate(self) -> float:
        """FLOP/s."""
        return self.flops / self.time


def estimate(plan: GemmPlan, problem: tuple[int, int, int], rates: Rates, latency_ns: float) -> Estimate:
    """The model's time of `plan` for `problem`, when a load takes `latency_ns`."""
    plan = replace(plan, problem=problem)
    waves, tile = explain(plan).waves, k_tile(plan, rates)
    latency, k_tiles = rates.cycles(latency_ns), math.ceil(problem[2] / plan.cta_tile[2])
    runs_on = any(r.name == "producer" for r in plan.roles)  # the ring is refilled while a tile is stored
    by_ring, by_flow = k_tiles * tile.ring(latency), k_tiles * tile.flow
    out = epilogue(plan, tile, max(by_ring, by_flow), rates)
    if runs_on:
        cycles = max(by_ring, by_flow + out.exposed)
        once = latency + out.whole
    else:
        cycles = max(by_ring, latency + by_flow) + out.exposed
        once = 0.0
    moved = traffic(plan, waves, tile)
    on_chip = (waves.waves * cycles + once) / rates.clock
    from_memory = moved.compulsory / rates.arch.memory_bandwidth
    flops = 2.0 * math.prod(problem)
    return Estimate(
        problem=problem,
        k_tile=tile,
        epilogue=out,
        waves=waves,
        traffic=moved,
        floor=flops / rates.arch.peak_flops_16bit,
        tile_cycles=cycles,
        time=max(on_chip, from_memory),
        flops=flops,
        bound="memory" if from_memory > on_chip else bound(tile, latency),
    )


def bound(tile: KTile, latency: float) -> str:
    """What sets the time of a k tile, in words; units that tie are all named."""
    if tile.ring(latency) > tile.flow:
        if tile.rounds > 1:
            return f"latency: {tile.rounds} loads one after the other"
        return "latency: nothing else in flight" if tile.stages == 1 else f"latency: {tile.stages} stages"
    units = {"tensor pipe": tile.mma, "shared memory": tile.smem, "L2 port": tile.l2}
    return ", ".join(name for name, cycles in units.items() if cycles == tile.flow)
