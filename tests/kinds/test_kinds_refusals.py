"""What cannot be, each with its message; and the way out that it names is one."""

import pytest
from kinds import KINDS, plan_of, project_of, text_of

from kgen.errors import PlanError, SpecError
from kgen.plan import make_plan
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values
from kgen.spec.gemm import sm100a

UNIFIED = "warps.roles=unified warps.consumers=1 cluster.cta_group=1"
ONE = "warps.consumers=1 cluster.cta_group=1"

# preset; assignments; field; what (hint); the hint as assignments
CASES = {
    "_whole_rows": (
        "tf32", "tile.k=64", "tile.k", "a 128-byte row holds 32 tf32, not 64 (set k: 32)", "tile.k=32",
    ),
    "_only_fp8_mixes": (
        "tf32", "dtype.b=e4m3", "dtype.b", "an MMA mixes e4m3 with 8-bit types, not with tf32 (set b: same)",
        "dtype.b=same",
    ),
    "_only_fp8_mixes, mxfp4 with e5m2": (
        "mxfp4", "dtype.b=e5m2", "dtype.b", "an MMA mixes e5m2 with 8-bit types, not with e2m1 (set b: same)",
        "dtype.b=same",
    ),
    "_scales_fit_the_type, 16 bits": (
        "mn_major", "dtype.scales=block32", "dtype.scales", "no MMA scales blocks of bf16 (set scales: none)",
        "dtype.scales=none",
    ),
    "_scales_fit_the_type, blocks of 16": (
        "mxfp8", "dtype.scales=block16", "dtype.scales",
        "blocks of 16 are for e2m1; e4m3 has one scale per 32 (set scales: block32)", "dtype.scales=block32",
    ),
    "_scales_fit_the_type, none": (
        "nvfp4", "dtype.scales=none", "dtype.scales",
        "two e2m1 to a byte need scales (set scales: block32 or block16)", "dtype.scales=block16",
    ),
    "_threads_load_16_bits": (
        "fp8", f"load=threads pipeline.stages=1 {UNIFIED}", "load", "threads load 16-bit elements, not e4m3 (set "
        "load: tma)", "load=tma",
    ),
    "_scales_need_roles": (
        "mxfp8", f"{UNIFIED} tile.n=128", "dtype.scales",
        "only a producer warp loads scales (set warps.roles: specialized)", "warps.roles=specialized",
    ),
    "_whole_scale_atoms": (
        "mxfp8", "tile.n=192", "tile.n",
        "scales come in atoms of 128 rows of B; 192 would cut one (set n: 128 or 256)", "tile.n=256",
    ),
    "_whole_scale_atoms, narrow": (
        "mxfp8", "tile.n=64", "tile.n", "scales come in atoms of 128 rows of B; 64 would cut one (set n: 128)",
        "tile.n=128",
    ),
    "_only_16_bits_transpose, tf32": (
        "tf32", "layout.a=m", "layout.a", "A of tf32 is read along k only: 32-bit elements transpose only in a "
        "swizzle that no template here writes (set a: k)", "layout.a=k",
    ),
    "_only_16_bits_transpose, fp8": (
        "fp8", "layout.b=n", "layout.b",
        "B of e4m3 is read along k only: no template here transposes 8-bit elements (set b: k)", "layout.b=k",
    ),
    "_only_16_bits_transpose, fp4": (
        "nvfp4", "layout.a=m", "layout.a", "A of e2m1 is read along k only: the tensor core does not transpose "
        "packed 4-bit elements (set a: k)", "layout.a=k",
    ),
    "_boxes_need_roles": (
        "mn_major", f"{UNIFIED} layout.b=k", "layout.a", "only a producer warp loads a tile in several boxes (set a: "
        "k, or warps.roles: specialized)", "layout.a=k",
    ),
    "_whole_boxes": (
        "mn_major", "tile.n=192", "tile.n",
        "a CTA holds 96 columns of B, no whole 64-column boxes (set n: 128, or layout.b: k)", "tile.n=128",
    ),
    "_whole_boxes, other way out": (
        "mn_major", "tile.n=64", "tile.n",
        "a CTA holds 32 columns of B, no whole 64-column boxes (set n: 128, or layout.b: k)", "layout.b=k",
    ),
    "columns of scales": (
        "nvfp4", "warps.consumers=2 pipeline.stages=2", "tile.n",
        "2 consumers x 1 accumulators x 256 columns + 2 x 48 of scales = 608 columns of tensor memory; sm_100a has "
        "512 (set tile.n: 128, or fewer consumers or accumulators)", "tile.n=128",
    ),
    "columns of scales, narrow already": (
        "mxfp4", "cluster.cta_group=2 warps.consumers=2 pipeline.stages=2", "tile.n",
        "2 consumers x 2 accumulators x 128 columns + 2 x 16 of scales = 544 columns of tensor memory; sm_100a has "
        "512 (take fewer consumers or accumulators)", "pipeline.accumulators=1",
    ),
}  # fmt: skip


def refusals(text: str) -> dict[str, str]:
    """Field: what (hint)."""
    try:
        make_plan(parse_spec(text, "x.yaml").spec)
    except (SpecError, PlanError) as e:
        return {r.field: str(r).partition(f"{r.field}: ")[2] for r in getattr(e, "refusals", ())} or {"": str(e)}
    return {}


@pytest.mark.parametrize("case", CASES)
def test_the_message_and_the_way_out(case):
    preset, assignments, field, message, way_out = CASES[case]
    broken = set_values(text_of(preset), assignments.split())
    assert message in "\n".join(f"{f}: {m}" for f, m in refusals(broken).items()) and field in str(refusals(broken))
    assert refusals(set_values(broken, way_out.split())) == {}


def test_every_new_rule_has_a_case():
    names = [name for name in vars(sm100a) if name.startswith("_") and callable(getattr(sm100a, name))]
    mine = [n for n in names if any(w in n for w in ("whole_rows", "fp8", "scale", "16", "boxes"))]
    assert len(mine) == 9 and {c.partition(",")[0] for c in CASES} >= set(mine)


@pytest.mark.parametrize("kind", KINDS)
def test_presets_stay_readable(kind):
    for path, text in project_of(kind).items():
        if path.endswith((".cu", ".h", ".py")):
            assert max(map(len, text.split("\n"))) <= 120, path
    assert plan_of(kind).name == f"gemm_{kind}"
