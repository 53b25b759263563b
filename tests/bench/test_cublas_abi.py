"""Numbers, layouts and signatures of the cuBLAS interfaces, against the headers where they are found."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgen import cublas_abi as abi
from kgen.runtime import GemmArgs

from .conftest import HERE, compile_c

# What abi_probe.c printed with the headers of cuBLAS 13.10.
RECORDED = {
    "CUDA_R_32F": 0,
    "CUDA_R_16F": 2,
    "CUDA_R_16BF": 14,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_GEMM_DEFAULT": -1,
    "CUBLAS_STATUS_SUCCESS": 0,
    "CUBLASLT_MATMUL_DESC_TRANSA": 3,
    "CUBLASLT_MATMUL_DESC_TRANSB": 4,
    "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": 1,
    "sizeof cublasLtMatmulAlgo_t": 64,
    "sizeof cublasLtMatmulHeuristicResult_t": 96,
    "cublasLtMatmulHeuristicResult_t.algo": 0,
    "cublasLtMatmulHeuristicResult_t.workspaceSize": 64,
    "cublasLtMatmulHeuristicResult_t.state": 72,
    "cublasLtMatmulHeuristicResult_t.wavesCount": 76,
    "cublasLtMatmulHeuristicResult_t.reserved": 80,
}


def ours() -> dict[str, int]:
    result = abi.LtHeuristicResult
    return {
        "CUDA_R_32F": abi.CUDA_R["fp32"],
        "CUDA_R_16F": abi.CUDA_R["fp16"],
        "CUDA_R_16BF": abi.CUDA_R["bf16"],
        "CUBLAS_COMPUTE_32F": abi.CUBLAS_COMPUTE_32F,
        "CUBLAS_OP_N": abi.CUBLAS_OP_N,
        "CUBLAS_OP_T": abi.CUBLAS_OP_T,
        "CUBLAS_GEMM_DEFAULT": abi.CUBLAS_GEMM_DEFAULT,
        "CUBLAS_STATUS_SUCCESS": 0,
        "CUBLASLT_MATMUL_DESC_TRANSA": abi.CUBLASLT_MATMUL_DESC_TRANSA,
        "CUBLASLT_MATMUL_DESC_TRANSB": abi.CUBLASLT_MATMUL_DESC_TRANSB,
        "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": abi.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        "sizeof cublasLtMatmulAlgo_t": ctypes.sizeof(abi.LtAlgo),
        "sizeof cublasLtMatmulHeuristicResult_t": ctypes.sizeof(result),
        **{
            f"cublasLtMatmulHeuristicResult_t.{field}": getattr(result, field).offset
            for field, *_ in result._fields_
        },
    }


def header_folders() -> list[Path]:
    """Include folders that together hold cublasLt.h and the CUDA headers it includes."""
    candidates = [Path(p) for p in os.environ.get("KGEN_CUBLAS_INCLUDE", "").split(os.pathsep) if p]
    for entry in sys.path:
        candidates += [Path(entry) / "nvidia/cu13/include", Path(entry) / "nvidia/cublas/include"]
    candidates += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    candidates += sorted(Path("/usr/local").glob("cuda-*/include"))
    folders = [folder for folder in candidates if folder.is_dir()]
    needed = ("cublasLt.h", "library_types.h", "driver_types.h")
    if not all(any((folder / name).is_file() for folder in folders) for name in needed):
        pytest.skip("no cublasLt.h on this machine; the recorded values were compared")
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    return folders


def test_numbers_and_layouts_are_the_recorded_ones():
    assert ours() == RECORDED


def test_numbers_and_layouts_are_those_of_the_headers(tmp_path):
    includes = [f"-I{folder}" for folder in header_folders()]
    probe = tmp_path / "probe"
    subprocess.run(["gcc", *includes, "-o", str(probe), str(HERE / "abi_probe.c")], check=True)
    lines = subprocess.run([str(probe)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {name: int(value) for name, value in (line.rsplit(" ", 1) for line in lines)} == ours()


def test_the_fake_has_the_signatures_of_the_headers(tmp_path):
    includes = [f"-I{folder}" for folder in header_folders()]
    compile_c("fake_cublas.c", tmp_path / "fake.so", "-DREAL_HEADERS", *includes)


def test_argument_struct_of_a_project():
    assert ctypes.sizeof(GemmArgs) == 80
    assert [getattr(GemmArgs, name).offset for name, _ in GemmArgs._fields_] == list(range(0, 80, 8))


def test_library_search_says_what_is_missing(tmp_path):
    found, note = abi.find_cublas([tmp_path])
    assert found is None and "not found" in note and "pip install" in note


def test_library_search_says_what_does_not_load(tmp_path):
    for name in ("libcublas.so.13", "libcublasLt.so.13"):
        (tmp_path / name).write_text("no library")
    found, note = abi.find_cublas([tmp_path])
    assert found is None and "did not load" in note


def test_search_order_begins_with_the_chosen_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("KGEN_CUBLAS_DIR", str(tmp_path))
    assert next(abi.library_folders()) == tmp_path
