"""Derived numbers against ones worked out by hand."""

import pytest

from kgen.plan import make_plan
from kgen.presets import presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

# Written out, so that tuning a preset changes no number here.
THREADS = """
kernel: gemm
arch: sm_90a
name: x
tile: {m: 128, n: 128}
load: threads
schedule: {kind: grid}
pipeline: {stages: 1}
warps: {roles: unified}
epilogue: {store: direct}
"""
RING = set_values(THREADS, ["load=tma", "pipeline.stages=4", "epilogue.store=tma"])
ROLES = set_values(RING, ["schedule.kind=persistent", "warps.roles=specialized"])
CLUSTER = set_values(ROLES, ["cluster={size: 2, multicast: b}"])
CONSUMERS = set_values(CLUSTER, ["warps.consumers=2", "warps.registers={producer: 40, consumer: 232}"])


def plan_of(text, *changes):
    return make_plan(parse_spec(set_values(text, list(changes))).spec)


def barriers(plan):
    return {b.name: b for b in plan.barriers}


def test_thread_loads_have_no_barriers_maps_or_ring():
    plan = plan_of(THREADS)
    assert plan.barriers == () and plan.tensor_maps == ()
    # One tile of A and one of B: 2 x 128 rows x 64 columns x 2 B.
    assert plan.smem.bytes == 2 * 128 * 64 * 2 == 32_768


def test_unified_tma_waits_for_both_boxes():
    full = barriers(plan_of(RING))["full"]
    assert (full.depth, full.arrivals, full.tx_bytes) == (4, 1, 2 * 128 * 64 * 2)
    assert [b.name for b in plan_of(RING).barriers] == ["full"]


def test_a_lone_consumer_frees_a_stage_with_its_four_warps():
    empty = barriers(plan_of(ROLES))["empty"]
    assert (empty.depth, empty.arrivals, empty.tx_bytes, empty.first_parity) == (4, 4, 0, 1)


def test_multicast_counts_the_consumers_of_both_ctas_and_the_bytes_of_both_halves():
    found = barriers(plan_of(CLUSTER))
    assert found["empty"].arrivals == 4 * 2
    # A whole from its own CTA, B in two halves of 64 rows: 128 x 64 x 2 + 2 x (64 x 64 x 2).
    assert found["full"].tx_bytes == 16_384 + 2 * 8_192
    boxes = {t.name: (t.box_rows, t.box_columns) for t in plan_of(CLUSTER).tensor_maps}
    assert boxes == {"map_a": (128, 64), "map_b": (64, 64), "map_d": (16, 64)}


def test_two_consumers_by_hand():
    plan = plan_of(CONSUMERS)
    found = barriers(plan)
    assert found["empty"].arrivals == 4 * 2 * 2  # warps, consumers, CTAs
    assert found["full"].tx_bytes == 256 * 64 * 2 + 128 * 64 * 2 == 49_152
    offsets = {r.name: (r.offset, r.bytes) for r in plan.smem.regions}
    assert offsets == {
        "a": (0, 4 * 256 * 64 * 2),
        "b": (131_072, 4 * 128 * 64 * 2),
        "d": (196_608, 8 * 2 * 16 * 128),  # warps, staging, rows, bytes of a row
        "full": (229_376, 4 * 8),
        "empty": (229_408, 4 * 8),
    }
    assert plan.smem.bytes == 229_440
    roles = {r.name: (r.first_warp, r.warps, r.registers) for r in plan.roles}
    assert roles == {"consumer": (0, 8, 232), "producer": (8, 4, 40)}
    assert 256 * 232 + 128 * 40 == 64_512 <= 65_536
    assert plan.launch.threads == 384 and plan.launch.launch_registers == 168  # 65,536 / 384 in steps of 8
    assert plan.cta_tile == (256, 128, 64) and plan.cluster_tile == (512, 128)


def test_without_a_split_one_warp_is_producer_enough():
    assert {r.name: r.warps for r in plan_of(ROLES).roles} == {"consumer": 4, "producer": 1}
    assert plan_of(ROLES).launch.threads == 160


def test_sharing_a_widens_the_cluster_along_n():
    plan = plan_of(CLUSTER, "cluster.multicast=a")
    assert plan.cluster_tile == (128, 256)
    full = barriers(plan)["full"]
    assert {d.operand: (d.copies, d.bytes_each) for d in full.deliveries} == {
        "a": (2, 8_192),
        "b": (1, 16_384),
    }


def test_wider_results_take_narrower_store_boxes():
    boxes = {t.name: (t.box_rows, t.box_columns) for t in plan_of(ROLES, "dtype.output=fp32").tensor_maps}
    assert boxes["map_d"] == (16, 32)


@pytest.mark.parametrize("p", presets(), ids=lambda p: p.reference)
def test_regions_follow_each_other_and_fit(p):
    plan = plan_of(p.text)
    end = 0
    for region in plan.smem.regions:
        assert region.offset == end
        end += region.bytes
    assert end == plan.smem.bytes <= plan.launch.smem_bytes <= plan.arch.smem_per_cta
    # Tiles start where the swizzle pattern does, barriers at 8 bytes.
    assert all(r.offset % (8 if r.ctype.startswith("uint") else 1024) == 0 for r in plan.smem.regions)
