"""One case per rule and per kind of mistake, with the exact message: place, field, what (how to fix)."""

import pytest

from kgen.errors import SpecError, UsageError
from kgen.spec.base import load_spec, parse_spec
from kgen.spec.families import FAMILIES

HEAD = "kernel: gemm\narch: sm_90a\nname: x\n"
UNIFIED = "warps: {roles: unified}\npipeline: {stages: 1}\n"

# Line 4 is the first after HEAD.
MISTAKES = {
    "unknown field": ("tille: {m: 64}", "4:1: tille: unknown field (did you mean tile?)"),
    "unknown nested field": (
        "pipeline: {depth: 3}",
        "4:12: pipeline.depth: unknown field (known here: stages)",
    ),
    "no such word": (
        "load: tmaa",
        "4:7: load: 'tmaa' is none of threads, tma (did you mean tma?)",
    ),
    "no such word, none near": (
        "load: 7",
        "4:7: load: 7 is none of threads, tma (choose one of threads, tma)",
    ),
    "only one choice": (
        "tile: {k: 32}",
        "4:11: tile.k: 32 is not 64 (nothing else is possible here)",
    ),
    "above": ("tile: {n: 300}", "4:11: tile.n: 300 is above 256 (nearest: 256)"),
    "above, in the range of a strict limit": (
        "problem: {m: 2147483648}",
        "4:14: problem.m: 2147483648 is above 2147483647 (nearest: 2147483647)",
    ),
    "below": ("pipeline: {stages: 0}", "4:20: pipeline.stages: 0 is below 1 (nearest: 1)"),
    "below, where the least legal value is a multiple": (
        "tile: {m: 7}",
        "4:11: tile.m: 7 is below 64 (nearest: 64)",
    ),
    "between multiples": (
        "tile: {m: 100}",
        "4:11: tile.m: 100 is not a multiple of 64 (nearest: 64 or 128)",
    ),
    "union, wrong type": (
        "schedule: {ctas: many}",
        "4:18: schedule.ctas: 'many' is neither 'auto' nor a whole number",
    ),
    "union, out of range": ("schedule: {ctas: 0}", "4:18: schedule.ctas: 0 is below 1 (nearest: 1)"),
    "not a number": ("tile: {m: wide}", "4:11: tile.m: 'wide' is not a whole number"),
    "a fraction": ("tile: {m: 64.5}", "4:11: tile.m: 64.5 is not a whole number"),
    "yes is no number": ("tile: {m: yes}", "4:11: tile.m: True is not a whole number"),
    "not text": ("about: 3", "4:8: about: 3 is not text"),
    "not a mapping": (
        "tile: 64",
        "4:7: tile: 64 is not a mapping (write its fields indented below it)",
    ),
    "empty mapping": ("tile:", "4:6: tile: None is not a mapping (write its fields indented below it)"),
    "given twice": ("load: tma\nload: tma", "5:1: load: given twice, first on line 4 (keep one)"),
    "foreign tag": (
        "about: !!python/name:os.system x",
        "4:8: about: 'x' is no plain value (write it without a tag, or in quotes)",
    ),
    "endless alias": (
        "tile: &t {m: *t}",
        "4:7: tile.m: an alias to what contains it (write the value out)",
    ),
    "key that is no word": (
        "? [a, b]\n: 1",
        "4:3: a key is a list or a mapping (a field's name is a word)",
    ),
}

RULES = {
    "_once": (
        f"k_loop: once\n{UNIFIED}schedule: {{kind: grid}}",
        "4:9: k_loop: 'once' is the one-tile kernel and needs load: threads and schedule.kind: single "
        "(set k_loop: loop)",
    ),
    "_thread_loads_have_no_ring": (
        "load: threads\nwarps: {roles: unified}\npipeline: {stages: 3}\nepilogue: {store: direct}",
        "6:20: pipeline.stages: 3 stages need asynchronous loads; load: threads fills one buffer and waits "
        "(set stages: 1, or load: tma)",
    ),
    "_roles_need_tma": (
        "load: threads\npipeline: {stages: 1}\nwarps: {roles: specialized}",
        "6:16: warps.roles: a producer warp loads through TMA only (set load: tma, or roles: unified)",
    ),
    "_roles_need_a_ring": (
        "pipeline: {stages: 1}",
        "4:20: pipeline.stages: a specialized kernel holds one stage under the wgmma group in flight "
        "and fills another: 1 < 2 (set stages: 2 or more)",
    ),
    "_consumers_need_roles": (
        "warps: {roles: unified, consumers: 2}",
        "4:36: warps.consumers: 2 consumers need roles: specialized; unified is one warpgroup "
        "(set consumers: 1, or roles: specialized)",
    ),
    "_split_needs_roles": (
        "warps: {roles: unified, registers: {producer: 40}}",
        "4:36: warps.registers: setmaxnreg moves registers between roles; unified has one (remove registers)",
    ),
    "_cluster_shares": (
        "cluster: {size: 2}",
        "4:1: cluster.multicast: a cluster without a shared operand gains nothing (set multicast: b (or a))",
    ),
    "_cluster_shares, alone": (
        "cluster: {size: 1, multicast: b}",
        "4:31: cluster.multicast: one CTA has nobody to share with (set cluster.size: 2, or multicast: none)",
    ),
    "_cluster_needs_roles": (
        "cluster: {size: 2, multicast: b}\nwarps: {roles: unified}",
        "4:17: cluster.size: multicast needs a producer that waits for every CTA's consumers (set roles: specialized)",
    ),
    "_cluster_needs_roles, single": (
        "cluster: {size: 2, multicast: b}\nschedule: {kind: single}",
        "4:17: cluster.size: schedule.kind: single launches one CTA (set schedule.kind: grid or persistent)",
    ),
    "_whole_clusters": (
        "cluster: {size: 2, multicast: b}\nschedule: {ctas: 131}",
        "5:18: schedule.ctas: 131 CTAs are no whole number of clusters of 2 (set ctas: 130)",
    ),
    "_raster_needs_a_walk": (
        "schedule: {kind: grid, group_m: 4}",
        "4:33: schedule.group_m: 4 orders a walk over tiles; kind: grid gives a CTA one tile "
        "(leave group_m at 8, or set kind: persistent)",
    ),
    "_raster_needs_a_walk, single": (
        "schedule: {kind: single, group_m: 4}",
        "4:35: schedule.group_m: 4 orders a walk over tiles; kind: single gives a CTA one tile "
        "(leave group_m at 8, or set kind: persistent)",
    ),
    "_staging_is_for_tma": (
        "epilogue: {store: direct, staging: 3}",
        "4:36: epilogue.staging: 3 is a number of staging buffers; store: direct has none "
        "(leave staging at 2, or set store: tma)",
    ),
    "_ctas_are_persistent": (
        "schedule: {kind: grid, ctas: 8}",
        "4:30: schedule.ctas: kind: grid launches one CTA per tile (remove ctas, or kind: persistent)",
    ),
}


# The same for Blackwell, after its own head.
HEAD_SM100A = HEAD.replace("sm_90a", "sm_100a")
RULES_SM100A = {
    "_once": (
        f"k_loop: once\n{UNIFIED}schedule: {{kind: grid}}",
        "4:9: k_loop: 'once' is the one-tile kernel and needs load: threads and schedule.kind: single "
        "(set k_loop: loop)",
    ),
    "_thread_loads_have_no_ring": (
        "load: threads\nwarps: {roles: unified}\npipeline: {stages: 3}\nepilogue: {store: direct}",
        "6:20: pipeline.stages: 3 stages need asynchronous loads; load: threads fills one buffer and waits "
        "(set stages: 1, or load: tma)",
    ),
    "_roles_need_tma": (
        "load: threads\npipeline: {stages: 1}\nwarps: {roles: specialized}",
        "6:16: warps.roles: a producer warp loads through TMA only (set load: tma, or roles: unified)",
    ),
    "_consumers_need_roles": (
        "warps: {roles: unified, consumers: 2}",
        "4:36: warps.consumers: 2 consumers need roles: specialized; unified is one warpgroup "
        "(set consumers: 1, or roles: specialized)",
    ),
    "_split_needs_roles": (
        "warps: {roles: unified, registers: {control: 40}}",
        "4:36: warps.registers: setmaxnreg moves registers between roles; unified has one (remove registers)",
    ),
    "_second_accumulator_overlaps": (
        "pipeline: {accumulators: 2}\nwarps: {roles: unified}",
        "4:26: pipeline.accumulators: one warpgroup stores before it multiplies again (set accumulators: 1)",
    ),
    "_second_accumulator_overlaps, one tile": (
        "pipeline: {accumulators: 2}\nschedule: {kind: grid}",
        "4:26: pipeline.accumulators: kind: grid gives a CTA one tile, which fills one accumulator "
        "(set accumulators: 1, or schedule.kind: persistent)",
    ),
    "_pair_needs_roles": (
        "cluster: {cta_group: 2}\nwarps: {roles: unified}",
        "4:22: cluster.cta_group: one CTA of a pair issues for both, which takes a role (set roles: specialized)",
    ),
    "_pair_needs_roles, single": (
        "cluster: {cta_group: 2}\nschedule: {kind: single}",
        "4:22: cluster.cta_group: schedule.kind: single launches one CTA (set schedule.kind: grid or persistent)",
    ),
    "_whole_pairs": (
        "cluster: {cta_group: 2}\nschedule: {ctas: 147}",
        "5:18: schedule.ctas: 147 CTAs are no whole pairs (set ctas: 146)",
    ),
    "_raster_needs_a_walk": (
        "schedule: {kind: grid, group_m: 4}",
        "4:33: schedule.group_m: 4 orders a walk over tiles; kind: grid gives a CTA one tile "
        "(leave group_m at 8, or set kind: persistent)",
    ),
    "_raster_needs_a_walk, serpentine": (
        "schedule: {kind: grid, walk: serpentine}",
        "4:30: schedule.walk: serpentine orders a walk over tiles; kind: grid gives a CTA one tile "
        "(leave walk at down, or set kind: persistent)",
    ),
    "_staging_is_for_tma": (
        "epilogue: {store: direct, staging: 3}",
        "4:36: epilogue.staging: 3 is a number of staging buffers; store: direct has none "
        "(leave staging at 2, or set store: tma)",
    ),
    "_ctas_are_persistent": (
        "schedule: {kind: grid, ctas: 8}",
        "4:30: schedule.ctas: kind: grid launches one CTA per tile (remove ctas, or kind: persistent)",
    ),
    "_split_of_k": (
        "schedule: {kind: grid, split_k: 2}",
        "4:33: schedule.split_k: kind: grid gives a CTA whole tiles (set split_k: 1, or schedule.kind: persistent)",
    ),
    "_split_of_k, direct": (
        "schedule: {split_k: 2}\nepilogue: {store: direct}",
        "4:21: schedule.split_k: sums leave through store boxes (set split_k: 1, or epilogue.store: tma)",
    ),
    "_scheduler_is_a_role": (
        "schedule: {kind: clc}\nwarps: {roles: unified}",
        "4:18: schedule.kind: a scheduler warp asks for tiles, which takes a role (set roles: specialized)",
    ),
    "_whole_rows": (
        "tile: {k: 32}",
        "4:11: tile.k: a 128-byte row holds 64 bf16, not 32 (set k: 64)",
    ),
    "_only_fp8_mixes": (
        "dtype: {b: e5m2}",
        "4:12: dtype.b: an MMA mixes e5m2 with 8-bit types, not with bf16 (set b: same)",
    ),
    "_scales_fit_the_type": (
        "dtype: {scales: block32}",
        "4:17: dtype.scales: no MMA scales blocks of bf16 (set scales: none)",
    ),
    "_scales_fit_the_type, blocks of 16": (
        "dtype: {input: e4m3, scales: block16}\ntile: {k: 128}",
        "4:30: dtype.scales: blocks of 16 are for e2m1; e4m3 has one scale per 32 (set scales: block32)",
    ),
    "_scales_fit_the_type, none": (
        "dtype: {input: e2m1}\ntile: {k: 256}",
        "4:1: dtype.scales: two e2m1 to a byte need scales (set scales: block32 or block16)",
    ),
    "_threads_load_16_bits": (
        "dtype: {input: tf32}\nload: threads\nwarps: {roles: unified}\npipeline: {stages: 1}",
        "5:7: load: threads load 16-bit elements, not tf32 (set load: tma)",
    ),
    "_scales_need_roles": (
        "dtype: {input: e4m3, scales: block32}\nwarps: {roles: unified}",
        "4:30: dtype.scales: only a producer warp loads scales (set warps.roles: specialized)",
    ),
    "_whole_scale_atoms": (
        "dtype: {input: e4m3, scales: block32}\ntile: {n: 192}",
        "5:11: tile.n: scales come in atoms of 128 rows of B; 192 would cut one (set n: 128 or 256)",
    ),
    "_only_16_bits_transpose": (
        "dtype: {input: tf32}\nlayout: {a: m}",
        "5:13: layout.a: A of tf32 is read along k only: 32-bit elements transpose only in a swizzle that no "
        "template here writes (set a: k)",
    ),
    "_boxes_need_roles": (
        "layout: {b: n}\nwarps: {roles: unified}",
        "4:13: layout.b: only a producer warp loads a tile in several boxes (set b: k, or warps.roles: specialized)",
    ),
    "_whole_boxes": (
        "layout: {b: n}\ntile: {n: 96}",
        "5:11: tile.n: a CTA holds 96 columns of B, no whole 64-column boxes (set n: 64, or layout.b: k)",
    ),
    "_split_of_k, pairs": (
        "schedule: {split_k: 2}\nepilogue: {ops: [swiglu]}",
        "4:21: schedule.split_k: sums are shared by columns of the product, not by pairs (set split_k: 1)",
    ),
    "_split_of_k, unified": (
        "schedule: {split_k: 2}\nwarps: {roles: unified}",
        "4:21: schedule.split_k: roles: unified multiplies all of K (set split_k: 1, or roles: specialized)",
    ),
}


def messages(text):
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "f.yaml")
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_has_one_message_with_its_place(case):
    text, expected = MISTAKES[case]
    assert messages(HEAD + text) == [f"f.yaml:{expected}"]


@pytest.mark.parametrize("case", RULES)
def test_a_rule_names_what_is_wrong_and_the_way_out(case):
    text, expected = RULES[case]
    assert messages(HEAD + text) == [f"f.yaml:{expected}"]


@pytest.mark.parametrize("case", RULES_SM100A)
def test_a_rule_of_blackwell_names_what_is_wrong_and_the_way_out(case):
    text, expected = RULES_SM100A[case]
    assert messages(HEAD_SM100A + text) == [f"f.yaml:{expected}"]


@pytest.mark.parametrize(("arch", "cases"), [("sm_90a", RULES), ("sm_100a", RULES_SM100A)])
def test_every_rule_has_a_case(arch, cases):
    rules = {fn.__name__ for family in FAMILIES.values() for _, fn in family.variants[arch].rules._rules}
    rules = {rule for rule in rules if not rule.startswith("_ops_")}  # theirs are in tests/epilogue
    assert rules == {case.partition(",")[0] for case in cases}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: a spec is a mapping of fields (start with `kernel: gemm`)"),
        ("- a\n- b", "1:1: a spec is a mapping of fields (start with `kernel: gemm`)"),
        ("arch: sm_90a", "1:1: kernel: missing (one of: gemm)"),
        ("kernl: gemm", "1:1: kernl: unknown field (did you mean kernel?)"),
        ("kernel: gem", "1:9: kernel: unknown kernel family 'gem' (did you mean gemm?)"),
        ("kernel: [gemm]", "1:9: kernel: unknown kernel family ['gemm'] (did you mean gemm?)"),
        ("kernel: gemm\nname: x", "1:1: arch: missing (every spec must give it)"),
        ("kernel: gemm\narch: sm_90a\nnam: x", "3:1: nam: unknown field (did you mean name?)"),
        (
            "kernel: gemm\narch: sm_90\nname: x",
            "2:7: arch: 'sm_90' is none of sm_90a, sm_100a (did you mean sm_90a?)",
        ),
        (
            "kernel: gemm\narch: sm_90a\nname: Gemm 1",
            "3:7: name: 'Gemm 1' must be a C identifier of lower-case letters, digits and _, "
            "at most 48 long; it names files and symbols",
        ),
        (
            "kernel: gemm\narch: sm_90a\nname: union",
            "3:7: name: 'union' is a word of C++; choose another name",
        ),
        ("kernel: gemm\n  arch: 1", "2:7: YAML syntax: mapping values are not allowed here"),
        ("kernel: gemm\nname: a\x07", "2:8: YAML syntax: character '\\x07' is not allowed"),
        ("kernel: gemm\ntile: {m: 64", None),
        ("[" * 5000, "1:1: YAML syntax: nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_no_spec_at_all_is_located_too(text, expected):
    found = messages(text)
    assert len(found) == 1
    if expected is None:
        assert found[0].startswith("f.yaml:2:") and "YAML syntax: while parsing a flow mapping" in found[0]
    else:
        assert found == [f"f.yaml:{expected}"]


def test_all_mistakes_come_at_once_in_the_order_of_the_file():
    text = HEAD + "about: 1\ntile: {m: 100, n: 300}\npipeline: {stages: 1}\ncluster: {size: 2}\n"
    assert [m.split(": ")[1] for m in messages(text)] == [
        "about", "tile.m", "tile.n", "pipeline.stages", "cluster.multicast",
    ]  # fmt: skip


def test_a_misspelled_field_silences_the_rules_about_the_one_it_meant():
    # Without stages the default of 4 would stand in, and the rule on thread loads would complain of it.
    text = HEAD + "load: threads\nwarps: {roles: unified}\npipeline: {stagse: 1}\nepilogue: {store: direct}\n"
    assert messages(text) == ["f.yaml:6:12: pipeline.stagse: unknown field (did you mean stages?)"]


def test_a_misspelled_section_silences_them_as_well():
    text = HEAD + "load: threads\nwarps: {roles: unified}\npipelin: {stages: 1}\nepilogue: {store: direct}\n"
    assert messages(text) == ["f.yaml:6:1: pipelin: unknown field (did you mean pipeline?)"]


def test_a_wrong_value_silences_only_the_rules_that_read_it():
    text = HEAD + "pipeline: {stages: 0}\ncluster: {size: 2}\n"
    assert [m.split(": ")[1] for m in messages(text)] == ["pipeline.stages", "cluster.multicast"]


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.yaml: no such file"):
        load_spec(tmp_path / "gone.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path / "binary.yaml")
