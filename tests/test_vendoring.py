"""A bare C++ project takes two kernels, builds them into one binary with warnings as errors, and runs both."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kgen.toolchain import find_toolchain
from kgen.vendoring import vendor_files

HERE = Path(__file__).parent
GENERATED = HERE.parent / "generated" / "sm_90a"


def _run(*command, **kwargs):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    """Build directory of the foreign project; it sees none of kgen's Python."""
    root = tmp_path_factory.mktemp("foreign")
    vendor_files(GENERATED / "gemm_step5", "gemm_step5", root / "kernels")
    assert sorted(p.name for p in (root / "kernels").iterdir()) == ["gemm_step5.cu", "gemm_step5.h"]
    skip = shutil.ignore_patterns("build")
    project = shutil.copytree(GENERATED / "gemm_step9", root / "gemm_step9", ignore=skip)
    tools = find_toolchain()
    env = os.environ | {"CUDACXX": str(tools.nvcc)}
    build = root / "build"
    options = [f"-DKERNELS={root / 'kernels'}", f"-DPROJECT={project}", "-DCMAKE_CUDA_ARCHITECTURES=90a-real"]
    _run("cmake", "-S", HERE / "vendoring", "-B", build, *options, env=env)
    _run("cmake", "--build", build, "--parallel", "2", env=env)
    _run("cmake", "--install", build, "--prefix", root / "installed", env=env)
    return build


def test_two_kernels_link_into_one_binary(binary):
    assert (binary / "foreign").is_file()


def test_only_the_entry_points_are_exported(binary):
    symbols = [line.split() for line in _run("nm", "-D", "--defined-only", binary / "libboth.so").splitlines()]
    assert sorted(name for _, _, name in symbols) == ["gemm_step5_launch", "gemm_step9_launch"]


def test_install_brings_library_header_and_package(binary):
    installed = binary.parent / "installed"
    names = {p.relative_to(installed).as_posix().split("/", 1)[-1] for p in installed.rglob("*") if p.is_file()}
    assert {"libgemm_step9.a", "gemm_step9.h"} <= {n.split("/")[-1] for n in names}
    assert any(n.endswith("cmake/gemm_step9/gemm_step9Config.cmake") for n in names)


@pytest.mark.gpu
def test_both_kernels_run(binary):
    print(_run(binary / "foreign"))
