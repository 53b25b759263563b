"""A fixed set of random specs, to be compiled and run: the same on every machine, and spread over what a spec allows.

Of many drawn plans those are kept that show most pairs of choices not seen before, so that a hundred of them reach
nearly every pair that is legal at all.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import yaml
from legal_specs import plan_or_none, spec_data

from kgen.emulation import Shape
from kgen.plan.common import GemmPlan

COUNT, POOL, SEED = 104, 500, 20_260_611


@dataclass(frozen=True, eq=False)
class DrawnSpec:
    """A legal spec with what it says, its plan, and the choices it stands for."""

    name: str
    text: str
    plan: GemmPlan
    choices: frozenset[tuple]


def choices(data: dict) -> frozenset[tuple]:
    """What a spec chose, in classes where there are many values."""
    stages = data["pipeline"]["stages"]
    registers = data["warps"].get("registers")
    said = {
        "input": data["dtype"]["input"],
        "output": data["dtype"]["output"],
        "m": data["tile"]["m"],
        "n": data["tile"]["n"],
        "load": data["load"],
        "k_loop": data.get("k_loop", "loop"),
        "schedule": data["schedule"]["kind"],
        "ctas_per_sm": data["schedule"]["ctas_per_sm"],
        "stages": stages if stages < 5 else "5 to 8" if stages < 9 else "9 and more",
        "consumers": data["warps"]["consumers"] if data["warps"]["roles"] == "specialized" else "unified",
        "registers": registers["producer"] if registers else "as planned",
        "cluster": (data["cluster"]["size"], data["cluster"]["multicast"]),
        "store": data["epilogue"]["store"],
        "staging": min(data["epilogue"]["staging"], 4) if data["epilogue"]["store"] == "tma" else "none",
    }
    return frozenset(said.items())


def pairs(chosen: frozenset[tuple]) -> tuple[tuple, ...]:
    """In a fixed order, so that sums over them are the same everywhere."""
    return tuple(combinations(sorted(chosen, key=str), 2))


@cache
def drawn_pool() -> tuple[DrawnSpec, ...]:
    """Every legal spec of the draw, in its order, no two alike."""
    rng = random.Random(SEED)
    pool: dict[str, DrawnSpec] = {}
    while len(pool) < POOL:
        data = spec_data(lambda *c: rng.choice(c), rng.randint)
        name = f"drawn_{len(pool):03d}"
        key = json.dumps(data, sort_keys=True)
        plan = None if key in pool else plan_or_none(data | {"name": name})
        if plan is not None:
            text = yaml.safe_dump(data | {"name": name}, sort_keys=False)
            pool[key] = DrawnSpec(name, text, plan, choices(data))
    return tuple(pool.values())


@cache
def drawn_specs() -> tuple[DrawnSpec, ...]:
    """`COUNT` specs of the pool, the widest first. A pair that was seen counts ever less, so that ties do not
    favour one corner."""
    worth = [0.1**times for times in range(COUNT + 1)]
    left, seen, chosen = {s: pairs(s.choices) for s in drawn_pool()}, Counter(), []
    while len(chosen) < COUNT:
        best = max(left, key=lambda s: sum(worth[seen[p]] for p in left[s]))
        seen.update(left.pop(best))
        chosen.append(best)
    return tuple(chosen)


def odd_shapes(plan: GemmPlan) -> list[Shape]:
    """Two (m, n, k) with no even edge: one k tile over more tiles than the emulator's CTAs have at once, where the
    schedule allows; and a ring that wraps, with a tail."""
    (block_m, block_n, block_k), (tile_m, tile_n), stages = plan.cta_tile, plan.cluster_tile, plan.stages
    if plan.one_tile:
        deep = block_k - 9 if plan.k_tiles else (stages + 1) * block_k + 5
        return [(block_m - 3, block_n - 1, block_k - 1), (block_m - 27, max(1, block_n - 5), deep)]
    laps = 2 if plan.launch.cluster_size < 4 else 1  # the emulated card has room for one cluster of four
    return [(laps * tile_m + 3, laps * tile_n + 1, block_k - 5), (tile_m - 5, tile_n + 7, (stages + 1) * block_k + 3)]
