"""Static facts: they hold of every plan, and each is noticed when it does not."""

from dataclasses import replace

import pytest
from variants import named_plans

from kgen.plan import make_plan
from kgen.presets import spec_root
from kgen.protocol.facts import FACTS, broken_facts
from kgen.spec.base import parse_spec

PLANS = named_plans("sm_90a") | {f"sm_100a {name}": p for name, p in named_plans("sm_100a").items()}
PLAN, BLACKWELL = PLANS["gemm_step9"], PLANS["sm_100a gemm_step9"]
SCALED = make_plan(parse_spec((spec_root() / "gemm/sm_100a/nvfp4.yaml").read_text()).spec)


@pytest.mark.parametrize("name", PLANS)
def test_every_fact_holds(name):
    assert broken_facts(PLANS[name]) == []


def region(plan, name, **changes):
    regions = tuple(replace(r, **changes) if r.name == name else r for r in plan.smem.regions)
    return replace(plan, smem=replace(plan.smem, regions=regions))


def tensor_map(plan, operand, **changes):
    maps = tuple(replace(m, **changes) if m.operand == operand else m for m in plan.tensor_maps)
    return replace(plan, tensor_maps=maps)


def role(plan, name, **changes):
    return replace(plan, roles=tuple(replace(r, **changes) if r.name == name else r for r in plan.roles))


def launch(plan, **changes):
    return replace(plan, launch=replace(plan.launch, **changes))


def full(plan, **changes):
    pipe = plan.pipelines[0]
    return replace(plan, pipelines=(replace(pipe, full=replace(pipe.full, **changes)),))


def constant(plan, name, value):
    groups = tuple(tuple(replace(c, value=value) if c.name == name else c for c in g) for g in plan.constants)
    return replace(plan, constants=groups)


def tmem(plan, **changes):
    return replace(plan, tmem=replace(plan.tmem, **changes))


DELIVERIES = PLAN.pipelines[0].full.deliveries
BROKEN = {
    "registers": [
        role(PLAN, "consumer", registers=240), role(PLAN, "producer", registers=44), role(PLAN, "producer", warps=3),
        launch(PLAN, launch_registers=172), launch(PLAN, ctas_per_sm=2), role(PLAN, "consumer", registers=96),
    ],
    "shared memory": [
        region(PLAN, "b", offset=65_024), region(PLAN, "d", offset=196_608 + 512), region(PLAN, "empty", bytes=16),
        region(PLAN, "full", offset=229_380), launch(PLAN, smem_bytes=229_000), launch(PLAN, smem_bytes=232_449),
        launch(PLAN, ctas_per_sm=2), region(PLAN, "a", bytes=64_000),
    ],
    "tensor maps": [
        tensor_map(PLAN, "a", box_rows=257), tensor_map(PLAN, "a", box_columns=128), tensor_map(PLAN, "b", box_rows=4),
        tensor_map(PLAN, "d", box_columns=4), tensor_map(PLAN, "d", box_columns=0),
    ],
    "bytes": [
        full(PLAN, deliveries=DELIVERIES[:1]),
        full(PLAN, deliveries=tuple(replace(d, bytes_each=d.bytes_each + 16) for d in DELIVERIES)),
        constant(PLAN, "STAGE_BYTES", 49_168), constant(PLAN, "EMPTY_ARRIVALS", 15),
    ],
    "descriptors": [
        replace(PLAN, cta_tile=(128, 256, 32)), replace(PLAN, cta_tile=(128, 256, 128)),
        region(PLAN, "b", offset=262_144 - 1_024),
    ],
    "wgmma shape": [
        replace(PLAN, mma_shape=(64, 260, 16)), replace(PLAN, mma_shape=(64, 128, 16)), constant(PLAN, "M_BLOCKS", 2),
        role(PLAN, "consumer", first_warp=2), role(PLAN, "consumer", warps=6),
        replace(PLAN, input=replace(PLAN.input, bytes=4)),
    ],
    "launch": [
        launch(PLAN, threads=1_056), launch(PLAN, threads=400), launch(PLAN, cluster=(16, 1, 1)),
        replace(PLAN, ctas=7), role(PLAN, "producer", warps=1),
    ],
    "tensor memory": [
        tmem(BLACKWELL, allocated=384), tmem(BLACKWELL, allocated=256),
        tmem(BLACKWELL, regions=BLACKWELL.tmem.regions[:1] * 2), launch(BLACKWELL, ctas_per_sm=2),
        role(BLACKWELL, "epilogue", first_warp=1), constant(BLACKWELL, "TMEM_COLUMNS", 256),
    ],
    "tcgen05 shape": [
        replace(BLACKWELL, mma_shape=(128, 256, 16)), replace(BLACKWELL, mma_shape=(256, 240, 16)),
        replace(BLACKWELL, mma_shape=(256, 256, 8)), constant(BLACKWELL, "INSTRUCTION", 0x08400490),
    ],
    "scales": [
        replace(SCALED, scales=None), replace(SCALED, kind="f16"), replace(SCALED, kind="mxf4"),
        replace(SCALED, scales=replace(SCALED.scales, block=32)), replace(SCALED, mma_shape=(256, 192, 64)),
        replace(SCALED, scales=replace(SCALED.scales, per_step=2)), constant(SCALED, "SCALE_TMEM", 128),
        replace(SCALED, scales=replace(SCALED.scales, atoms=2)), region(SCALED, "sfa", offset=163_904),
        region(SCALED, "sfb", bytes=8_192), replace(SCALED, tmem=replace(SCALED.tmem, regions=SCALED.tmem.regions[:1])),
    ],
}  # fmt: skip


BROKEN["registers"].append(role(BLACKWELL, "epilogue", registers=64))
BROKEN["bytes"] += [
    constant(BLACKWELL, "STAGE_BYTES", 98_320), constant(BLACKWELL, "EMPTY_ARRIVALS", 1),
    constant(BLACKWELL, "ACC_EMPTY_ARRIVALS", 4),
    full(BLACKWELL, deliveries=BLACKWELL.pipelines[0].full.deliveries[:1]),
]  # fmt: skip


def test_a_split_acts_on_whole_warpgroups():
    plan = PLANS["sm_100a b_split"]
    wrong = role(plan, "idle", registers=None)
    assert {b.fact for b in broken_facts(wrong)} == {"registers"}


@pytest.mark.parametrize("fact", FACTS)
def test_a_broken_fact_is_named(fact):
    for i, plan in enumerate(BROKEN[fact]):
        assert fact in {b.fact for b in broken_facts(plan)}, (fact, i)


def test_the_numbers_are_told():
    (broken,) = [b for b in broken_facts(role(PLAN, "consumer", registers=240)) if b.fact == "registers"]
    assert "66,560" in broken.what and "64,512" in broken.what, broken
