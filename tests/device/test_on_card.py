"""Every preset and variant on a Hopper card: the project's own shape matrix, through its own test file and Makefile."""

import json
import subprocess
import sys

import pytest
from variants import HOPPER, variant_plan, variant_project

from kgen.arch import ARCHS
from kgen.build import build_executable, build_library
from kgen.device import card
from kgen.plan import make_plan
from kgen.presets import preset, presets
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

pytestmark = pytest.mark.gpu
ARCH = ARCHS["sm_90a"]


@pytest.fixture(autouse=True)
def hopper():
    found = card()
    assert found is not None, "needs a Hopper card; there is none"
    assert found.compute_capability == ARCH.compute_capability, f"needs a Hopper card; found {found}"


def run_matrix(files: dict[str, str], directory) -> None:
    for path, text in files.items():
        (directory / path).write_text(text)
    build_library(directory, ARCH)
    (test,) = directory.glob("test_*.py")
    done = subprocess.run(
        [sys.executable, test.name, "--json"], cwd=directory, capture_output=True, text=True, timeout=280
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    results = [r for r in rows if "case" in r]
    assert done.returncode == 0, [r for r in results if not r["ok"]] or (rows[-1:], done.stderr)
    assert len(results) >= 30 and all(r["ok"] for r in results)


@pytest.mark.parametrize("step", [p.step for p in presets("gemm", "sm_90a")])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_preset(step, dtype, tmp_path):
    text = set_values(preset("gemm", step, "sm_90a").text, [f"dtype.input={dtype}", f"dtype.output={dtype}"])
    run_matrix(render_project(make_plan(parse_spec(text).spec), text), tmp_path)


@pytest.mark.parametrize("name", HOPPER)
def test_variant(name, tmp_path):
    run_matrix(variant_project(name), tmp_path)


@pytest.mark.parametrize("name", [n for n in HOPPER if n.startswith("finished")])
def test_program_of_an_epilogue(name, tmp_path):
    """main.cu verifies D and what the epilogue reduces, on shapes of its own choice and on an odd one."""
    for path, text in variant_project(name).items():
        (tmp_path / path).write_text(text)
    program = build_executable(tmp_path, ARCH).artifact
    for shape in ([], ["333", "202", "131"]):
        done = subprocess.run([program, *shape], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout + done.stderr
        reductions = variant_plan(name).reductions
        assert all(f"{r.op}: error" in done.stdout for r in reductions), done.stdout
