"""Hygiene of the templates: they place parts, they do not decide."""

import re

import pytest
from rungs import rung_plans
from variants import VARIANTS, preset_plans, variant_plan

from kgen import render

ROOT = render.template_root()
TEMPLATES = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file())
STATEMENT = re.compile(r"/\*%[+-]?\s*(.*?)\s*[+-]?%\*/", re.S)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
# Sizes of the machine: warp and warpgroup, swizzle row and chunk, rows of a wgmma, halves of an element pair.
MACHINE = {"0", "1", "2", "4", "8", "16", "32", "64", "128"}


def test_every_template_is_used(monkeypatch):
    used = set()
    loader = render.environment().loader
    original = type(loader).get_source
    monkeypatch.setattr(
        type(loader), "get_source", lambda self, env, path: (used.add(path), original(self, env, path))[1]
    )
    render.environment.cache_clear()
    try:
        for plan in [*preset_plans(), *rung_plans(), *map(variant_plan, VARIANTS)]:
            render.render_project(plan, "")
    finally:
        render.environment.cache_clear()
    assert set(TEMPLATES) - used == set()


@pytest.mark.parametrize("path", TEMPLATES)
def test_templates_only_ask_whether_a_thing_is_there(path):
    depth = 0
    for statement in STATEMENT.findall((ROOT / path).read_text()):
        word = statement.split()[0]
        if word in ("if", "elif"):
            depth += word == "if"
            assert depth <= 1, f"{path}: nested condition: {statement}"
            assert not re.search(r"[<>=]=?\s*\d|\d\s*[<>=]", statement.replace("cluster_size > 1", "")), (
                f"{path}: a numeric condition belongs in the plan: {statement}"
            )
        depth -= word == "endif"


@pytest.mark.parametrize("path", [p for p in TEMPLATES if p.startswith("gemm/sm90a/")])
def test_hopper_templates_know_no_blackwell(path):
    assert not re.search(r"tcgen05|tmem|cta_group|clusterlaunchcontrol", (ROOT / path).read_text())


@pytest.mark.parametrize("path", [p for p in TEMPLATES if p.startswith("gemm/sm100a/")])
def test_blackwell_templates_know_no_hopper(path):
    assert not re.search(r"wgmma|sm_?90", (ROOT / path).read_text())


@pytest.mark.parametrize("path", [p for p in TEMPLATES if p.startswith(("gemm/common/", "project/"))])
def test_common_templates_know_no_architecture(path):
    assert not re.search(r"wgmma|tcgen05|sm_?90|sm_?100", re.sub(r"serialised wgmma", "", (ROOT / path).read_text()))


def test_nothing_knows_a_ladder_step():
    offenders = [p for p in TEMPLATES if re.search(r"\bstep\s*[=<>]|gemm_step|\.step\b", (ROOT / p).read_text())]
    package = ROOT.parent / "kgen"
    for path in [*package.glob("plan/*.py"), *package.glob("spec/*.py"), package / "render.py"]:
        if re.search(r"\bstep\s*(==|!=|<|>|>=|<=|in)\s", path.read_text()):
            offenders.append(str(path))
    assert offenders == []


@pytest.mark.parametrize("plan", preset_plans(None), ids=lambda p: f"{p.arch.name}/{p.name}")
def test_no_unexplained_number_in_a_kernel(plan):
    text = render.render_kernel(plan)
    kernel = text[text.index("__global__") : text.index("#ifndef __CUDACC_RTC__", text.index("__global__"))]
    kernel = re.sub(r'"[^"]*"', "", COMMENT.sub("", kernel))
    numbers = set(re.findall(r"(?<![\w.])\d+(?![\w.])", kernel))
    assert numbers <= MACHINE


@pytest.mark.parametrize("plan", preset_plans(None), ids=lambda p: f"{p.arch.name}/{p.name}")
def test_every_wrapper_is_called(plan):
    text = render.render_kernel(plan)
    for name in re.findall(r"^(?:template <int N> )?DEVICE [\w ]+?[ *](\w+)\(", text, re.M):
        assert len(re.findall(rf"\b{name}\b", COMMENT.sub("", text))) > 1, f"{name} is emitted but never called"


def test_kernels_stay_readable():
    lengths = {}
    for plan in preset_plans(None):
        lines = render.render_kernel(plan).split("\n")
        lengths[plan.arch.name, plan.name] = len(lines) - 1
        assert max(map(len, lines)) <= 120, plan.name
    # A load from tensor memory names 64 registers, on 17 lines: what puts the last Blackwell steps beyond 400.
    longest = {"sm_90a": 400, "sm_100a": 450}
    assert all(lines <= longest[arch] for (arch, _), lines in lengths.items()), lengths
    for arch in {a for a, _ in lengths}:
        assert lengths[arch, "gemm_step1"] < lengths[arch, "gemm_step9"]
