"""The static model by hand, and its page."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from kgen.arch import SM_100A
from kgen.explain import explain
from kgen.plan import make_plan
from kgen.presets import preset
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values
from kgen.static.k_tile import k_tile
from kgen.static.model import bound, estimate
from kgen.static.page import SIZES, page, rungs
from kgen.static.rates import B200
from kgen.static.traffic import traffic

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance-sm100a.md"


def plan_of(step, *changes):
    return make_plan(parse_spec(set_values(preset("gemm", step, "sm_100a").text, list(changes))).spec)


def test_the_page_is_fresh():
    update = "`python -m kgen.static docs/performance-sm100a.md` updates it"
    assert DOCUMENT.read_text(encoding="utf-8") == page(), update


def test_the_clock_is_the_datasheets():
    assert B200.clock * B200.arch.sm_count * B200.mma_flops == pytest.approx(SM_100A.peak_flops_16bit)
    assert B200.clock == pytest.approx(1.856e9, rel=1e-3)


def test_k_tiles_by_hand():
    one = k_tile(plan_of(7), B200)
    # 128 x 128 x 64: 2 Mi FLOP; 16 KB of A and 16 KB of B, written once and read once.
    assert (one.mma, one.smem, one.l2) == (256, 512, 512)
    pair = k_tile(plan_of(8), B200)
    # 128 x 256 per CTA with 128 rows of B in each: the same bytes for twice the products.
    assert (pair.written, pair.read, pair.mma, pair.smem, pair.l2) == (32_768, 32_768, 512, 512, 512)
    two = k_tile(plan_of(9), B200)
    # Two consumers read 128 rows of A each, and both the CTA's half of B.
    assert (two.written, two.read) == ((256 + 128) * 128, 2 * (128 + 128) * 128)
    assert (two.mma, two.smem, two.l2) == (1024, 896, 768)


@pytest.mark.parametrize("step", range(4, 10))
def test_the_stage_is_what_the_barrier_counts(step):
    plan = plan_of(step)
    assert k_tile(plan, B200).written * plan.cta_group == plan.barriers[0].tx_bytes


def test_the_ring_by_hand():
    tile = k_tile(plan_of(5), B200)
    assert tile.ring(1000) == (1000 + 256) / 2 and tile.period(100) == 512
    assert tile.needed(1000) == 1256 / 512
    threads = k_tile(plan_of(3), B200)
    assert threads.rounds == 32_768 // (128 * 16), "16 bytes by each of 128 threads at a time"
    assert bound(threads, 100) == "latency: 16 loads one after the other"
    assert bound(k_tile(plan_of(9), B200), 1000) == "tensor pipe"


def test_what_the_plan_overlaps():
    found = {name: estimate(plan, SIZES["4096³"], B200, 800).epilogue for name, plan in rungs().items() if name > "2"}
    assert found["4"].exposed == found["4"].tmem + found["4"].staging == 512
    assert found["7"].exposed == 256 + 256 / 2, "all reads, and the first of two chunks staged"
    assert found["9"].until_free == 1024 + 1024 * 3 / 4 and found["9"].exposed == 1792 - 512
    hidden = estimate(plan_of(8, "pipeline.accumulators=2"), SIZES["4096³"], B200, 800)
    assert hidden.epilogue.exposed == 0 and hidden.time < estimate(plan_of(8), SIZES["4096³"], B200, 800).time


def test_a_time_by_hand():
    e = estimate(plan_of(9), (4096, 4096, 4096), B200, 1000)
    # Two waves of 64 k tiles; one fill at first, and at last an epilogue: its reads, then 128 KB over the port.
    cycles = 2 * (64 * 1024 + 1280) + B200.cycles(1000) + (1024 + 2048)
    assert e.time == pytest.approx(cycles / B200.clock)
    unified = estimate(plan_of(4), (4096, 4096, 4096), B200, 1000)
    assert unified.time == pytest.approx(7 * (64 * (B200.cycles(1000) + 256) + 512) / B200.clock)


@pytest.mark.parametrize("size", SIZES)
def test_no_estimate_beats_the_floor_and_memory_limits_none(size):
    for name, plan in rungs().items():
        if not plan.one_tile:
            for ns in B200.latency_ns:
                e = estimate(plan, SIZES[size], B200, ns)
                assert e.time > e.floor, name
                assert e.traffic.per_wave / SM_100A.memory_bandwidth < e.time, name
                assert e.traffic.compulsory <= e.traffic.per_wave, name


@pytest.mark.parametrize("step, group", [(3, None), (6, 8), (9, 8)])
def test_traffic_by_walking_the_tiles(step, group):
    plan = replace(plan_of(step), problem=(4096, 3072, 640))
    waves = explain(plan).waves
    group = group or waves.tiles_m
    order = sorted(
        itertools.product(range(waves.tiles_m), range(waves.tiles_n)),
        key=lambda t: (t[0] // group, t[1], t[0]),
    )
    rows, columns = waves.tile
    fetched = 0
    for wave in (order[i : i + waves.slots] for i in range(0, len(order), waves.slots)):
        fetched += len({i for i, _ in wave}) * rows + len({j for _, j in wave}) * columns
    found = traffic(plan, waves, k_tile(plan, B200))
    d = 4096 * 3072 * 2
    assert found.per_wave == fetched * 640 * 2 + d
    assert found.compulsory == (4096 + 3072) * 640 * 2 + d
    # Each tile loads its own rows of A and B once, whichever CTA of a pair holds them.
    assert found.l2 == waves.tiles * (rows + columns) * 640 * 2 + d


def test_several_ctas_per_sm_are_not_modelled():
    with pytest.raises(ValueError, match="2 CTAs share an SM"):
        k_tile(plan_of(6, "schedule.ctas_per_sm=2"), B200)
