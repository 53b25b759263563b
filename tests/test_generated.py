"""The goldens under generated/: what the presets render to, byte for byte, and that it compiles cleanly."""

import difflib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from variants import VARIANTS, variant_plan, variant_project

from kgen.arch import ARCHS
from kgen.build import build_executable, build_library, compile_cubin
from kgen.plan import make_plan
from kgen.presets import all_presets
from kgen.protocol import certify
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.toolchain import find_toolchain

GENERATED = Path(__file__).parent.parent / "generated"
UPDATE = "if the change is meant, `kgen render --all` updates the goldens"
PRESETS = all_presets()


def _rendered(preset) -> dict[str, str]:
    plan = make_plan(parse_spec(preset.text, str(preset.path)).spec)
    return render_project(plan, preset.text, certify(plan))


def _golden(preset) -> Path:
    return GENERATED / preset.arch / f"{preset.family}_{preset.path.stem}"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.reference)
def test_golden_is_what_the_preset_renders_to(preset):
    want, directory = _rendered(preset), _golden(preset)
    have = {p.name: p.read_text() for p in directory.iterdir() if p.is_file() and p.name != ".kgen.json"}
    assert sorted(have) == sorted(want), UPDATE
    for name, text in want.items():
        lines = have[name].splitlines(), text.splitlines()
        diff = difflib.unified_diff(*lines, f"golden/{name}", "rendered", lineterm="")
        assert have[name] == text, "\n".join([*diff, UPDATE])


def test_no_stray_goldens():
    wanted = {_golden(p) for p in PRESETS}
    assert {d for a in GENERATED.iterdir() for d in a.iterdir()} == wanted, UPDATE


def test_rendering_twice_gives_the_same_bytes():
    for preset in PRESETS:
        assert _rendered(preset) == _rendered(preset)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.reference)
def test_golden_compiles_within_its_budget(preset, tmp_path):
    project = shutil.copytree(_golden(preset), tmp_path / "project", ignore=shutil.ignore_patterns("build"))
    report = compile_cubin(project, ARCHS[preset.arch])  # raises on a warning, a spill, a serialised wgmma
    plan = make_plan(parse_spec(preset.text).spec)
    (kernel,) = report.kernels
    assert kernel.registers <= plan.launch.launch_registers
    assert kernel.spill_stores == kernel.spill_loads == kernel.stack_frame == 0
    assert report.peak_rss_mb <= 400
    print(f"{preset.reference}: {report.seconds:.1f} s, {report.peak_rss_mb:.0f} MiB, {kernel.registers} registers")


@pytest.mark.parametrize("name", VARIANTS)
def test_variant_compiles(name, tmp_path):
    for path, text in variant_project(name).items():
        (tmp_path / path).write_text(text)
    (kernel,) = compile_cubin(tmp_path, variant_plan(name).arch).kernels
    assert kernel.registers <= variant_plan(name).launch.launch_registers


def test_library_and_program_build(tmp_path):
    (preset,) = [p for p in PRESETS if (p.arch, p.step) == ("sm_90a", 9)]
    project = shutil.copytree(_golden(preset), tmp_path / "project", ignore=shutil.ignore_patterns("build"))
    library = build_library(project, ARCHS["sm_90a"])
    assert library.artifact.is_file()
    assert library.seconds <= 10 and library.peak_rss_mb <= 400
    assert build_executable(project, ARCHS["sm_90a"]).artifact.is_file()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.reference)
def test_no_third_party_include(preset):
    allowed = {"cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h", "cuda_runtime_api.h", "stdint.h"}
    for suffix in (".cu", ".h"):
        (path,) = _golden(preset).glob(f"{_golden(preset).name}{suffix}")
        assert set(re.findall(r"#include <(.*?)>", path.read_text())) <= allowed


# What the hardware calls the instructions that a step is about (as cuobjdump prints them).
SASS = {
    7: {"UTCHMMA", "UTMALDG.2D", "UTMASTG.2D", "LDTM.x64"},
    8: {"UTCHMMA.2CTA", "UTMALDG.2D.2CTA", "UTMASTG.2D", "UTCBAR.2CTA.MULTICAST", "LDTM.x64"},
    9: {"UTCHMMA.2CTA", "UTMALDG.2D.2CTA", "UTMASTG.2D", "UTCBAR.2CTA.MULTICAST", "LDTM.x64"},
}


@pytest.mark.parametrize("step", SASS)
def test_blackwell_steps_become_the_instructions_they_are_about(step, tmp_path):
    tool = find_toolchain().nvcc.with_name("cuobjdump")
    if not tool.is_file():
        pytest.skip(f"{tool}: a disassembler is needed to look; it is no part of every toolchain")
    (preset,) = [p for p in PRESETS if (p.arch, p.step) == ("sm_100a", step)]
    project = shutil.copytree(_golden(preset), tmp_path / "project", ignore=shutil.ignore_patterns("build"))
    cubin = compile_cubin(project, ARCHS["sm_100a"]).artifact
    listing = subprocess.run([tool, "-sass", cubin], capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r"\b(?:UTC|UTMA|LDTM)[\w.]*", listing))
    assert SASS[step] <= found, found
    assert not re.search(r"\b(?:STL|LDL)\b", listing), "local memory"
