"""Presets with a word for a name: how commands take them, and that each says what it builds on."""

import json

import pytest

from kgen.commands.sources import source
from kgen.errors import UsageError
from kgen.presets import all_presets, base_of, named_presets, preset_of_reference, presets
from kgen.spec.base import parse_spec


@pytest.mark.parametrize("p", named_presets(), ids=lambda p: p.reference)
def test_a_named_preset_is_called_like_its_file_and_says_what_it_adds_to_what(p):
    assert parse_spec(p.text).spec.name == f"{p.family}_{p.path.stem}" and p.name == p.path.stem
    assert p.adds and p.adds != p.title and base_of(p) is not None
    assert p.adds not in {q.adds for q in all_presets(p.family, p.arch) if q != p}


def test_what_one_builds_on_comes_first_and_the_steps_before_all():
    for arch in {p.arch for p in all_presets()}:
        found = all_presets("gemm", arch)
        assert found == presets("gemm", arch) + named_presets("gemm", arch)
        assert all(found.index(base_of(p)) < found.index(p) for p in found if base_of(p))


def test_references():
    wanted = next(p for p in named_presets() if p.name == "deep_ring")
    for text in ("sm_100a/gemm/deep_ring", "gemm:deep_ring", "deep_ring", "gemm/deep_ring"):
        assert preset_of_reference(text) == wanted
    assert preset_of_reference("spec") is None and preset_of_reference("some/where") is None
    assert source("deep_ring").plan.stages == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gemm:deep_rin", "gemm has no preset 'deep_rin' (did you mean deep_ring?)"),
        ("sm_100a/gemm/two_accumulator", "has no preset 'two_accumulator' on sm_100a (did you mean two_accumulators?)"),
        ("gemm:x", "gemm has no preset 'x' (there is: gemm 1 to 9 on sm_90a; gemm 1 to 9, deep_ring"),
        ("conv:deep_ring", "unknown kernel family 'conv'"),
    ],
)
def test_an_unknown_name_gives_the_nearest(text, message):
    with pytest.raises(UsageError) as caught:
        preset_of_reference(text)
    assert message in str(caught.value)


def test_new_takes_a_name(kgen, tmp_path):
    made = kgen("new", "gemm", "--preset", "deep_ring")
    assert made.code == 0 and "gemm deep_ring for sm_100a" in made.out
    assert "STAGES = 4;" in (tmp_path / "gemm_deep_ring" / "gemm_deep_ring.cu").read_text()
    refused = kgen("new", "gemm", "--preset", "deep_rings", "-o", "other")
    assert refused.code == 2 and "did you mean deep_ring?" in refused.err
    assert kgen("new", "gemm", "--preset", "deep_ring", "--step", 7, "-o", "other").code == 2


def test_list_shows_names_below_the_steps_and_what_they_change(kgen):
    rows = {r["new"]: r for r in json.loads(kgen("list", "--json").out)}
    row = rows["kgen new gemm --preset deep_ring --arch sm_100a"]
    assert (row["name"], row["step"], row["builds_on"]) == ("deep_ring", None, "sm_100a/gemm/7")
    assert row["changes"] == [{"field": "pipeline.stages", "before": 2, "after": 4}]
    assert "to step 7: pipeline.stages: 2 → 4" in kgen("list").out


def test_diff_takes_names(kgen):
    assert "+pipeline.stages: 4\n" in kgen("diff", "7", "deep_ring", "--arch", "sm_100a").out
