"""C fakes compiled once, and a card made of host memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def compile_c(source: str, target: Path, *flags: str) -> Path:
    """Compile a source of this folder into a shared library."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags]
    subprocess.run([*command, "-o", str(target), str(HERE / source)], check=True)
    return target


@pytest.fixture(scope="session")
def cublas_folder(tmp_path_factory) -> Path:
    """A folder with fake libcublas.so.13 and libcublasLt.so.13."""
    folder = tmp_path_factory.mktemp("cublas")
    compile_c("fake_cublas.c", folder / "libcublasLt.so.13", "-DONLY_LT")
    compile_c("fake_cublas.c", folder / "libcublas.so.13", "-DONLY_BLAS")
    return folder


@pytest.fixture(scope="session")
def gemm_library(tmp_path_factory) -> Path:
    """A library with the entry points of fake_gemm.c."""
    return compile_c("fake_gemm.c", tmp_path_factory.mktemp("gemm") / "libright.so")
