"""What ptxas needs for each preset: processor time and memory of that process alone."""

from __future__ import annotations

import os
import subprocess

import pytest

from kgen.build import compile_ptx
from kgen.plan import make_plan
from kgen.presets import all_presets
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.toolchain import find_toolchain

PRESETS = {p.reference: p for p in all_presets("gemm")}
USUAL = ("sm_90a/gemm/9", "sm_100a/gemm/9", "sm_100a/gemm/nvfp4")  # run every time, all of them with `make test-slow`


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in USUAL)) for n in PRESETS])
def test_three_seconds_and_400_megabytes(name, tmp_path):
    plan = make_plan(parse_spec(PRESETS[name].text).spec)
    for path, text in render_project(plan, PRESETS[name].text).items():
        (tmp_path / path).write_text(text)
    ptx = compile_ptx(tmp_path, plan.arch).artifact
    ptxas = find_toolchain().nvcc.with_name("ptxas")
    process = subprocess.Popen([ptxas, "-arch", plan.arch.name, "-O3", ptx, "-o", tmp_path / "out.cubin"])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    print(f"{name}: {used.ru_utime + used.ru_stime:.2f} s, {used.ru_maxrss / 1024:.0f} MB")
    assert used.ru_utime + used.ru_stime <= 3 and used.ru_maxrss <= 400 * 1024
