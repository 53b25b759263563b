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
        "epilogue": {"store": store, "staging": between(1, 8) if store == "tma" else 2},
    }
    return data


@st.composite
def specs(draw):
    """`spec_data` as a strategy."""
    return spec_data(lambda *choices: draw(st.sampled_from(choices)), lambda low, high: draw(st.integers(low, high)))


@st.composite
def blackwell_specs(draw):
    """The same for sm_100a."""
    pick = lambda *choices: draw(st.sampled_from(choices))  # noqa: E731
    output, store = pick("bf16", "fp16", "fp32"), pick("tma", "tma", "direct")
    columns = 32 if output == "fp32" else 64
    data = {"kernel": "gemm", "arch": "sm_100a", "name": "x"}
    data["dtype"] = {"input": pick("bf16", "fp16"), "output": output}
    widths = [n for n in range(32, 257, 32) if store == "direct" or n % columns == 0]
    kind = pick("persistent", "persistent", "grid", "single")
    schedule = {"kind": kind, "ctas_per_sm": pick(1, 1, 1, 2)}
    if kind == "persistent":
        schedule |= {"ctas": pick("auto", "auto", 2, 14, 148), "group_m": draw(st.integers(1, 16))}
    consumers = accumulators = 1
    if pick(True, True, True, False):
        consumers = pick(1, 1, 2)
        accumulators = pick(1, 2) if kind == "persistent" else 1
        warps = {"roles": "specialized", "consumers": consumers}
        if pick(True, False):
            warps["registers"] = {"control": pick(24, 64), "epilogue": {1: 208, 2: 136}[consumers]}
        data["warps"] = warps
        data["cluster"] = {"cta_group": pick(1, 2) if kind != "single" else 1}
        data["load"] = "tma"
    else:
        data |= {"warps": {"roles": "unified", "consumers": 1}, "load": pick("tma", "tma", "threads")}
        if data["load"] == "threads" and kind == "single":
            data["k_loop"] = pick("once", "loop")
    by_threads = data["load"] == "threads"
    stages = 1 if by_threads else draw(st.integers(1, 4)) if pick(True, True, False) else draw(st.integers(1, 12))
    fit = [n for n in widths if n * consumers * accumulators * schedule["ctas_per_sm"] <= 512]
    data |= {
        "tile": {"n": pick(*fit)},
        "schedule": schedule,
        "pipeline": {"stages": stages, "accumulators": accumulators},
        "epilogue": {"store": store, "staging": pick(1, 2, 2, 3, 5, 8) if store == "tma" else 2},
    }
    return data
