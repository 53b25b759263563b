import json
import re

import pytest

from kgen.explain import explain
from kgen.plan import make_plan
from kgen.presets import preset, presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values


def plan_of(step, *changes, arch="sm_90a"):
    return make_plan(parse_spec(set_values(preset("gemm", step, arch).text, list(changes))).spec)


@pytest.mark.parametrize("p", presets(), ids=lambda p: p.reference)
def test_explained_totals_equal_the_plan(kgen, p):
    plan = make_plan(parse_spec(p.text).spec)
    shown = json.loads(kgen("explain", p.reference, "--json").out)
    smem = shown["smem"]
    assert smem["used"] == plan.smem.bytes == sum(r["bytes"] for r in smem["regions"])
    assert smem["free"] == plan.arch.smem_per_cta - plan.smem.bytes
    assert shown["launch"]["smem_bytes"] == plan.launch.smem_bytes
    assert [(b["name"], b["arrivals"], b["tx_bytes"]) for b in shown["barriers"]] == [
        (b.name, b.arrivals, b.tx_bytes) for b in plan.barriers
    ]
    for barrier in shown["barriers"]:
        assert eval_sum(barrier["tx_from"]) == barrier["tx_bytes"]
    assert sum(r["threads"] for r in shown["roles"]) == plan.launch.threads == shown["launch"]["threads"]
    assert shown["registers"]["used"] <= shown["registers"]["limit"] == 65_536
    assert [t["box_bytes"] for t in shown["tensor_maps"]] == [t.box_bytes for t in plan.tensor_maps]


def eval_sum(text):
    """`A: 1 x 32,768 + B: 2 x 8,192` as a number."""
    total = 0
    for term in text.split(" + ") if text else []:
        copies, each = term.split(": ")[1].replace(",", "").split(" x ")
        total += int(copies) * int(each)
    return total


def test_waves_by_hand():
    plan = plan_of(9, "tile={m: 128, n: 128}", "problem={m: 4000, n: 4096, k: 512}")
    waves = explain(plan).waves
    # Clusters compute 512 x 128: 8 x 32 = 256 of them on 132 / 2 = 66 slots, 58 of them in the last wave.
    assert (waves.tiles_m, waves.tiles_n, waves.tiles, waves.slots, waves.waves) == (8, 32, 256, 66, 4)
    assert waves.last_wave == 58 / 66 and waves.balance == 256 / 264 and waves.useful == 4000 / 4096
    assert explain(plan).launch.grid == (132, 1, 1)


def test_grids_by_hand():
    big = "problem={m: 1000, n: 300, k: 64}"
    assert explain(plan_of(3, "tile={m: 128, n: 128}", big)).launch.grid == (8, 3, 1)
    assert explain(plan_of(1)).launch.grid == (1, 1, 1)
    # Side by side along N: whole clusters, so 2 x 2 columns of CTAs for the 3 that D needs.
    wide = explain(plan_of(8, "tile={m: 128, n: 128}", "cluster.multicast=a", "schedule={kind: grid}", big))
    assert wide.launch.cluster == (1, 2, 1) and wide.launch.grid == (8, 4, 1)
    few = explain(plan_of(6, "tile={m: 128, n: 128}", big))
    assert few.launch.grid == (24, 1, 1) and few.waves.waves == 1 and few.waves.last_wave == 24 / 132
    fixed = explain(
        plan_of(8, "tile={m: 128, n: 128}", "schedule.ctas=16", "problem={m: 4096, n: 4096, k: 64}")
    )
    assert fixed.launch.grid == (16, 1, 1) and fixed.waves.slots == 8


def test_roofline_by_hand():
    square = explain(plan_of(9, "tile={m: 128, n: 128}", "problem={m: 4096, n: 4096, k: 4096}")).roofline
    # 2 x 4096^3 over three matrices of 4096^2 x 2 bytes.
    assert square.problem_intensity == pytest.approx(2 * 4096**3 / (3 * 4096**2 * 2))
    assert square.bound == "compute" and square.ceiling == 989.4e12
    # A CTA of 256 x 128 loads all of A's rows and half of B's: 320 rows of 64 x 2 bytes per k tile.
    assert square.tile_intensity == pytest.approx(2 * 256 * 128 * 64 / (320 * 64 * 2))
    thin = explain(plan_of(9, "problem={m: 16, n: 4096, k: 4096}")).roofline
    assert thin.bound == "memory" and thin.ceiling == pytest.approx(thin.problem_intensity * 4.8e12)
    lone = explain(plan_of(1)).roofline
    assert lone.ceiling_with_waves <= 989.4e12 / 132


def test_registers_are_summed_in_the_steps_they_are_given_in():
    found = explain(plan_of(9, "warps.registers={producer: 40, consumer: 232}")).registers
    assert (found.arithmetic, found.per_cta) == ("256 x 232 + 128 x 40", 64_512)
    assert explain(plan_of(7)).registers.arithmetic == "128 x 256 + 32 x 256"  # 255, in steps of 8


@pytest.mark.parametrize("p", presets(arch="sm_100a"), ids=lambda p: p.reference)
def test_the_tensor_memory_map_is_the_plans(kgen, p):
    plan = make_plan(parse_spec(p.text).spec)
    shown = json.loads(kgen("explain", p.reference, "--json").out)
    map_ = shown["tmem"]
    assert map_["used"] == sum(r["columns"] for r in map_["regions"]) <= map_["allocated"] == plan.tmem.allocated
    assert map_["limit"] == 512 == map_["free"] + map_["allocated"] * map_["ctas_per_sm"]
    ends = [r["last"] + 1 for r in map_["regions"]]
    assert [r["first"] for r in map_["regions"]] == [0, *ends[:-1]], "columns without holes or overlap"
    assert shown["registers"]["accumulators_in"] == "tensor memory"
    assert (shown["pair"] is None) == (plan.cta_group == 1)


def test_a_pairs_split_by_hand():
    plan = plan_of(9, arch="sm_100a")
    pair = explain(plan).pair
    first, second = pair.ctas
    # 512 x 256 of D: each CTA holds its own 256 rows of A and 128 of B, 64 deep, 2 bytes an element.
    assert (pair.tile, pair.mma) == ((512, 256), (256, 256, 16))
    assert (first.a_rows, second.a_rows) == ((0, 256), (256, 512)) == (first.d_rows, second.d_rows)
    assert (first.b_rows, second.b_rows) == ((0, 128), (128, 256))
    assert first.d_columns == second.d_columns == (0, 256)
    assert (first.issues, second.issues) == (True, False)
    assert first.stage_bytes == (256 + 128) * 64 * 2
    assert pair.stage_bytes == 2 * first.stage_bytes == plan.barriers[0].tx_bytes
    ends = {s.barrier: (s.from_ctas, s.in_ctas, s.waiter) for s in pair.signals}
    assert ends == {
        "full": ((0, 1), (0,), "mma"),
        "empty": ((0,), (0, 1), "producer"),
        "acc_full": ((0,), (0, 1), "epilogue"),
        "acc_empty": ((0, 1), (0,), "mma"),
    }
    for barrier in plan.barriers:  # who arrives from both CTAs is counted twice
        assert all((a.ctas == 2) == (barrier.name == "acc_empty") for a in barrier.arrivers)


def test_waves_and_roofline_of_a_pair_by_hand():
    found = explain(plan_of(9, arch="sm_100a"))
    # 4096 / 512 x 4096 / 256 = 128 tiles on 148 / 2 = 74 pairs: 54 of them busy in the second wave.
    waves = found.waves
    assert (waves.tiles, waves.slots, waves.slot_ctas, waves.waves) == (128, 74, 2, 2)
    assert waves.last_wave == 54 / 74 and found.launch.grid == (148, 1, 1)
    # A CTA of 256 x 256 loads its own rows of A and half of B's: 384 rows of 64 x 2 bytes per k tile.
    assert found.roofline.tile_intensity == pytest.approx(2 * 256 * 256 * 64 / (384 * 64 * 2))
    alone = explain(plan_of(7, arch="sm_100a"))
    assert alone.pair is None and alone.waves.slot_ctas == 1
    assert alone.roofline.tile_intensity == pytest.approx(64)


def test_hopper_has_neither_tensor_memory_nor_pairs():
    found = explain(plan_of(9))
    assert found.tmem is None and found.pair is None and found.registers.accumulators_in == "registers"


def test_explain_prints_every_section_for_a_person(kgen, project):
    out = kgen("explain", project).out
    for words in (
        "shared memory per CTA", "of 232,448 B used", "empty[", "first parity",
        "of 65,536", "accumulators lie in tensor memory", "tensor memory per CTA", "CTA pair",
        "tensor maps", "A[m, k]", "clusters of", "waves", "last wave", "roofline", "ceiling",
    ):  # fmt: skip
        assert words in out, words
    assert "no mbarriers" in kgen("explain", "sm_90a/gemm/1").out


def test_diff_shows_the_lesson_of_a_step(kgen):
    out = kgen("diff", 4, 5).out
    assert re.search(r"^-pipeline.stages: 1\n\+pipeline.stages: (\d+)\n", out, re.MULTILINE)
    assert re.search(r"^\+constexpr int STAGES = \d+;", out, re.MULTILINE)
    assert "gemm_step4" not in out.replace("--- gemm_step4.cu", ""), "the name is no difference"
    assert "\x1b[" not in out, "colours are for terminals"


def test_diff_takes_presets_projects_and_files(kgen, project):
    whole = kgen("diff", "sm_100a/gemm/8", "gemm:9").out
    assert kgen("diff", "8", "9").out == whole
    assert "the kernels are the same" in kgen("diff", "9", project).out
    assert "the specs choose the same" in kgen("diff", project / "spec.yaml", "9").out
    both = json.loads(kgen("diff", 1, 2, "--json").out)
    assert both["fields"] == [{"field": "k_loop", "before": "once", "after": "loop"}]
    assert both["code"].startswith("--- gemm_step1.cu\n+++ gemm_step2.cu\n")


def test_a_name_that_begins_another_is_not_mistaken_for_it():
    from kgen.commands.rendering import _renamed

    assert _renamed("gemm_1 gemm_1_args gemm_10 GEMM_1_H my_gemm_1x", "gemm_1", "b") == (
        "b b_args gemm_10 B_H my_gemm_1x"
    )


@pytest.mark.parametrize("arguments", [[], ["8"], ["8", "99"], ["8", "nothing"], ["8", "9", "--edits", "."]])
def test_diff_without_two_specs_is_a_usage_error(kgen, arguments):
    result = kgen("diff", *arguments)
    assert result.code == 2 and result.err.startswith("error: ")


def test_schema_goes_to_the_screen_or_a_file(kgen, tmp_path):
    printed = kgen("schema").out
    assert json.loads(printed)["title"] == "kgen spec"
    assert kgen("schema", "-o", "s.json").code == 0
    assert (tmp_path / "s.json").read_text() == printed
    assert kgen("schema", "-o", "no/such/s.json").code == 2


def test_doctor_answers_scripts_and_people(kgen):
    assert {"nvcc", "driver and card"} <= {f["name"] for f in json.loads(kgen("doctor", "--json").out)}


def test_vendor_copies_two_files_and_says_how_to_build_them(kgen, project, tmp_path):
    result = kgen("vendor", project, "--to", "their/src")
    assert result.code == 0 and "nvcc -std=c++17 -O3 -gencode arch=compute_100a,code=sm_100a" in result.out
    there = tmp_path / "their" / "src"
    assert {p.name for p in there.iterdir()} == {"gemm_step9.cu", "gemm_step9.h"}
    assert all(p.read_bytes() == (project / p.name).read_bytes() for p in there.iterdir())
    assert kgen("vendor", project, "--to", "their/src").out.count("unchanged") == 2
    (there / "gemm_step9.h").write_text("theirs")
    refused = kgen("vendor", project, "--to", "their/src")
    assert refused.code == 1 and "nothing was copied, because gemm_step9.h there" in refused.err
    assert (there / "gemm_step9.h").read_text() == "theirs"
    assert kgen("vendor", project, "--to", "their/src", "--force").code == 0
    assert (there / "gemm_step9.h").read_bytes() == (project / "gemm_step9.h").read_bytes()
    assert kgen("vendor", project, "--to", project / "Makefile").code == 1


def test_a_directory_that_is_no_project_is_a_usage_error(kgen, tmp_path):
    for command in (
        ["vendor", "--to", "x"],
        ["build"],
        ["test"],
        ["bench"],
        ["explain"],
        ["build", "nowhere"],
    ):
        result = kgen(*command)
        assert result.code == 2 and "Traceback" not in result.err, command
