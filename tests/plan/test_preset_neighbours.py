"""Each preset is one decision from the last."""

import pytest

from kgen.presets import presets
from kgen.spec.difference import differences

LADDER = {
    ("gemm", "sm_90a"): {
        2: {"k_loop"},
        3: {"schedule.kind"},
        4: {"load", "epilogue.store", "epilogue.staging"},
        5: {"pipeline.stages"},
        6: {"schedule.kind", "schedule.group_m", "schedule.ctas"},
        7: {"warps.roles"},
        8: {"cluster.size", "cluster.multicast", "pipeline.stages"},
        9: {
            "warps.consumers",
            "warps.registers.producer",
            "warps.registers.consumer",
            "pipeline.stages",
        },
    },
    ("gemm", "sm_100a"): {
        2: {"k_loop"},
        3: {"schedule.kind"},
        4: {"load", "epilogue.store", "epilogue.staging"},
        5: {"pipeline.stages"},
        6: {"schedule.kind", "schedule.group_m", "schedule.ctas"},
        7: {"warps.roles"},
        8: {"cluster.cta_group", "tile.n", "pipeline.stages"},
        9: {"warps.consumers", "epilogue.staging"},
    },
}


@pytest.mark.parametrize("p", presets(), ids=lambda p: p.reference)
def test_a_step_changes_exactly_the_documented_fields(p):
    documented = LADDER[p.family, p.arch]
    if p.step == 1:
        return
    before = next(q for q in presets(p.family, p.arch) if q.step == p.step - 1)
    assert {c.field for c in differences(before.text, p.text)} == documented[p.step]


def test_every_step_is_documented():
    for (family, arch), steps in LADDER.items():
        assert [p.step for p in presets(family, arch)] == [1, *steps]


def test_differences_see_values_added_removed_and_changed():
    before = "name: a\ntile: {m: 64, n: 8}\nload: tma\n"
    after = "name: b\ntile:\n  n: 8  # same\n  m: 128\nk_loop: loop\n"
    found = {(c.field, c.before, c.after) for c in differences(before, after)}
    assert found == {("tile.m", 64, 128), ("k_loop", None, "loop"), ("load", "tma", None)}
