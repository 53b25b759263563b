"""Bytes that a launch moves: from L2 to the SMs, and from memory under two simple models of the L2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kgen.explain import Waves
from kgen.plan.common import GemmPlan
from kgen.static.k_tile import KTile


@dataclass(frozen=True)
class Traffic:
    """`compulsory`: each matrix once. `per_wave`: each wave fetches the panels it touches once, and the next wave finds
    none of them."""

    l2: int
    compulsory: int
    per_wave: int


def traffic(plan: GemmPlan, waves: Waves, tile: KTile) -> Traffic:
    m, n, k = plan.problem
    size = plan.input.bytes
    d = m * n * plan.output.bytes
    k_tiles = math.ceil(k / plan.cta_tile[2])
    fetched = 0
    order = list(_order(plan, waves))
    for first in range(0, len(order), waves.slots):
        wave = order[first : first + waves.slots]
        rows = sum(min(waves.tile[0], m - i * waves.tile[0]) for i in {i for i, _ in wave})
        columns = sum(min(waves.tile[1], n - j * waves.tile[1]) for j in {j for _, j in wave})
        fetched += (rows + columns) * k * size
    loaded = waves.tiles * plan.launch.cluster_size * k_tiles * tile.written
    return Traffic(l2=loaded + d, compulsory=(m + n) * k * size + d, per_wave=fetched + d)


def _order(plan: GemmPlan, waves: Waves) -> Iterator[tuple[int, int]]:
    """The tiles in the order in which they are begun: down the rows of a group, then one column on. A plain grid starts
    its CTAs along x, which is M, so that all rows are one group."""
    group = plan.group_m if plan.schedule == "persistent" else waves.tiles_m
    for first in range(0, waves.tiles_m, group):
        for j in range(waves.tiles_n):
            for i in range(first, min(first + group, waves.tiles_m)):
                yield i, j
