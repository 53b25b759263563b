"""Random specs that are legal, also where no preset or variant goes."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st

from kgen.errors import PlanError, SpecError
from kgen.plan import make_plan
from kgen.spec.base import parse_spec


def plan_or_none(data: dict):
    """The plan of spec data, or None where it is refused."""
    try:
        return make_plan(parse_spec(json.dumps(data), "f.yaml").spec)  # JSON is YAML, and sooner written
    except (SpecError, PlanError):
        return None


def spec_data(pick: Callable, between: Callable[[int, int], int]) -> dict:
    """Spec data, nearly always legal: the fields that exclude each other are drawn together. `pick` chooses one of its
    arguments, `between` a number from one to another."""
    output = pick("bf16", "fp16", "fp32")
    data = {"kernel": "gemm", "arch": "sm_90a", "name": "x", "dtype": {"input": pick("bf16", "fp16"), "output": output}}
    specialized = pick(True, True, True, False)
    store = pick("tma", "tma", "direct")
    columns = 32 if output == "fp32" else 64
    widths = [n for n in (8, 24, 32, 40, 64, 96, 128, 192, 256) if store == "direct" or n % columns == 0]
    tile = {"m": pick(64, 64, 128), "n": pick(*widths)}
    kind = pick("persistent", "persistent", "grid", "single")
    cluster, multicast = 1, "none"
    if specialized:
        consumers = pick(1, 2, 2, 3)
        warps = {"roles": "specialized", "consumers": consumers}
        if pick(True, False):
            producer = pick(24, 40)
            warps["registers"] = {"producer": producer, "consumer": {1: 208, 2: 232, 3: 160}[consumers]}
        data["warps"] = warps
        if kind != "single":
            cluster = pick(1, 2, 2, 4)
            multicast = pick("a", "b") if cluster > 1 else "none"
        data["pipeline"] = {"stages": between(2, 12) if pick(True, True, False) else between(2, 24)}
        data["load"] = "tma"
    else:
        load = pick("tma", "tma", "threads")
        data |= {"warps": {"roles": "unified", "consumers": 1}, "load": load}
        data["pipeline"] = {"stages": between(1, 12) if load == "tma" else 1}
        if load == "threads" and kind == "single":
            data["k_loop"] = pick("once", "loop")
    data |= {
        "tile": tile,
        "schedule": {"kind": kind, "ctas_per_sm": pick(1, 1, 2)},
        "cluster": {"size": cluster, "multicast": multicast},
        "epilogue": {"store": store, "staging": between(1, 8)},
    }
    return data


@st.composite
def specs(draw):
    """`spec_data` as a strategy."""
    return spec_data(lambda *choices: draw(st.sampled_from(choices)), lambda low, high: draw(st.integers(low, high)))
