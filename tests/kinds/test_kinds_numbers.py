"""What `kgen explain` says of element types beyond 16 bits, and that `kgen bench` refuses them by name."""

import pytest
from kinds import KINDS, plan_of, project_of, text_of

from kgen.arch import SM_90A, SM_100A
from kgen.commands.proving import why_not_benched
from kgen.errors import UsageError
from kgen.explain import explain
from kgen.plan import make_plan
from kgen.presets import all_presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values
from kgen.static.k_tile import k_tile
from kgen.static.rates import B200

OTHERS = ("mxfp4_pair", "nvfp4_one_cta", "fp8_plain")
SIZE = 4096
# PFLOP/s of a B200, and bytes of an element of A or B with its share of a scale.
EXPECTED = {
    "tf32": (1.125, 4),
    "fp8": (4.5, 1),
    "mxfp8": (4.5, 1 + 1 / 32),
    "mxfp4": (9.0, 1 / 2 + 1 / 32),
    "nvfp4": (9.0, 1 / 2 + 1 / 16),
    "mn_major": (2.25, 2),
}


def of_size(name):
    changes = [f"problem={{m: {SIZE}, n: {SIZE}, k: {SIZE}}}"]
    return make_plan(parse_spec(set_values(text_of(name), changes)).spec)


@pytest.mark.parametrize("name", KINDS)
def test_the_roofline_is_that_of_the_kind(name):
    plan, (peak, each) = of_size(name), EXPECTED[name]
    found = explain(plan).roofline
    assert found.ridge == pytest.approx(peak * 1e15 / 8e12)
    assert found.bytes == pytest.approx(SIZE * SIZE * (2 * each + plan.output.bytes))
    assert found.bound == "compute" and found.ceiling == peak * 1e15


@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
def test_what_a_cta_loads_is_what_its_barrier_counts(name):
    """The barrier's bytes are those of both CTAs of a pair; `explain` works them out from elements and scales."""
    plan = plan_of(name)
    (rows, columns, depth), counted = plan.cta_tile, plan.barriers[0].tx_bytes / plan.cta_group
    found = explain(plan)
    assert found.roofline.tile_intensity == pytest.approx(2 * rows * columns * depth / counted)
    if found.pair:
        assert found.pair.stage_bytes == plan.barriers[0].tx_bytes


def test_every_kind_of_mma_has_a_peak():
    kinds = {make_plan(parse_spec(p.text).spec).kind for p in all_presets()}
    assert kinds <= set(SM_100A.peak_flops) and set(SM_90A.peak_flops) == {"f16"}


def test_the_static_model_refuses_what_its_rates_do_not_know():
    with pytest.raises(ValueError, match="gemm_mxfp8: kind mxf8f6f4"):
        k_tile(plan_of("mxfp8"), B200)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tf32", "multiplies tf32, and bench makes, checks and compares bf16 and fp16 only"),
        ("fp8", "multiplies e4m3 x e5m2, "),
        ("mxfp8", "with one ue8m0 per 32 along K"),
        ("mxfp4", "multiplies e2m1 with one ue8m0 per 32"),
        ("nvfp4", "multiplies e2m1 with one ue4m3 per 16"),
        ("mn_major", "takes operands stored as A[k, m], B[k, n] and D[m, n]"),
    ],
)
def test_bench_refuses_what_it_cannot_make_or_check(name, words, tmp_path, monkeypatch):
    from kgen.commands.proving import bench

    assert words in why_not_benched(plan_of(name))
    for path, text in project_of(name).items():
        (tmp_path / path).write_text(text)
    monkeypatch.setattr("kgen.device.cards", lambda: pytest.fail("refused before a card is looked for"))
    with pytest.raises(UsageError, match=r"its own program checks and times it \(make run\)"):
        bench([tmp_path])


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_bench_refuses_results_of_8_bits_and_takes_the_others(arch):
    for preset in all_presets():
        if (preset.arch, preset.path.stem) == (arch, "step9"):
            plans = [make_plan(parse_spec(set_values(preset.text, [f"dtype.output={t}"])).spec) for t in
                     ("bf16", "fp32", "e4m3")]  # fmt: skip
    refused = [why_not_benched(plan) for plan in plans]
    assert refused[:2] == [None, None] and "stores e4m3, and bench makes" in refused[2]
