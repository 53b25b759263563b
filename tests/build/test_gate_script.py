"""gate.sh, by which a project's own Makefile and CMake fail where the compiler only remarks."""

import subprocess
from pathlib import Path

import pytest

from kgen.render import template_root

GATE = Path(template_root()) / "project" / "gate.sh"


def gate(script: str, tmp_path) -> subprocess.CompletedProcess:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\n" + script)
    compiler.chmod(0o755)
    return subprocess.run(["sh", GATE, compiler, "an argument"], capture_output=True, text=True)


def test_a_clean_compilation_passes_and_is_shown(tmp_path):
    report = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
    done = gate(f'echo "got $1"; echo "{report}" >&2', tmp_path)
    assert done.returncode == 0 and "got an argument" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...",
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count",
        "    8 bytes stack frame, 16 bytes spill stores, 0 bytes spill loads",
        "warning #177-D: variable was declared but never referenced",
    ],
)
def test_a_remark_fails(line, tmp_path):
    done = gate(f'echo "{line}" >&2', tmp_path)
    assert done.returncode == 1 and line in done.stdout


def test_the_compilers_own_failure_is_passed_on(tmp_path):
    assert gate("exit 7", tmp_path).returncode == 7
