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
    _build(build, root, env, f"-DPROJECT={project}")
    _run("cmake", "--install", build, "--prefix", root / "installed", env=env)
    return build


def _build(build, root, env, *options):
    options = [f"-DKERNELS={root / 'kernels'}", "-DCMAKE_BUILD_TYPE=Release", *options]
    _run("cmake", "-S", HERE / "vendoring", "-B", build, *options, "-DCMAKE_CUDA_ARCHITECTURES=90a-real", env=env)
    _run("cmake", "--build", build, "--parallel", "2", env=env)


def test_two_kernels_link_into_one_binary(binary):
    assert (binary / "foreign").is_file()


def test_only_the_entry_points_are_visible(binary):
    """Of all that the two kernels define, a program or shared library that takes them in shows the C entry points."""
    visible = set()
    for archive in ("libvendored.a", "gemm_step9/libgemm_step9.a"):
        for line in _run("readelf", "--symbols", "--wide", binary / archive).splitlines():
            columns = line.split()
            if len(columns) == 8 and columns[5] == "DEFAULT" and columns[4] != "LOCAL" and columns[6] != "UND":
                visible.add(columns[7])
    assert visible == {"gemm_step5_launch", "gemm_step9_launch"}


def test_install_brings_library_header_and_package(binary):
    installed = binary.parent / "installed"
    names = {p.relative_to(installed).as_posix().split("/", 1)[-1] for p in installed.rglob("*") if p.is_file()}
    assert {"libgemm_step9.a", "gemm_step9.h"} <= {n.split("/")[-1] for n in names}
    (config,) = installed.rglob("gemm_step9Config.cmake")
    env = os.environ | {"CUDACXX": str(find_toolchain().nvcc)}
    _build(binary.parent / "from_package", binary.parent, env, f"-Dgemm_step9_DIR={config.parent}")
    assert (binary.parent / "from_package" / "foreign").is_file()


@pytest.mark.gpu
def test_both_kernels_run(binary):
    print(_run(binary / "foreign"))
