"""The parts of the cuBLAS and cuBLASLt C interfaces that the baselines call: numbers, structs, signatures.

Values are those of cublas_api.h, cublasLt.h and library_types.h; they have been the same since CUDA 11, and a
test compares them with the headers where a machine has them.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import KgenError

CUDA_R = {"fp32": 0, "fp16": 2, "bf16": 14}  # cudaDataType_t
CUBLAS_COMPUTE_32F = 68
CUBLAS_OP_N = 0
CUBLAS_OP_T = 1
CUBLAS_GEMM_DEFAULT = -1
CUBLASLT_MATMUL_DESC_TRANSA = 3
CUBLASLT_MATMUL_DESC_TRANSB = 4
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1


class CublasError(KgenError):
    """A cuBLAS call that returned anything but success. `status` is the cublasStatus_t."""

    def __init__(self, function: str, status: int, text: str):
        self.function, self.status = function, status
        super().__init__(f"{function}: {text or 'status'} ({status})")


class LtAlgo(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class LtHeuristicResult(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", LtAlgo),
        ("workspaceSize", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("wavesCount", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


_P, _I, _L, _Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t

# function -> argument types; each returns a cublasStatus_t
CUBLAS_FUNCTIONS: dict[str, tuple[type, ...]] = {
    "cublasCreate_v2": (_P,),
    "cublasDestroy_v2": (_P,),
    "cublasSetStream_v2": (_P, _P),
    "cublasGetVersion_v2": (_P, _P),
    # handle, transa, transb, m, n, k, alpha, A, type, lda, B, type, ldb, beta, C, type, ldc, compute, algo
    "cublasGemmEx": (_P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _P, _I, _I, _P, _P, _I, _I, _I, _I),
}
CUBLASLT_FUNCTIONS: dict[str, tuple[type, ...]] = {
    "cublasLtCreate": (_P,),
    "cublasLtDestroy": (_P,),
    "cublasLtMatmulDescCreate": (_P, _I, _I),
    "cublasLtMatmulDescDestroy": (_P,),
    "cublasLtMatmulDescSetAttribute": (_P, _I, _P, _Z),
    "cublasLtMatrixLayoutCreate": (_P, _I, ctypes.c_uint64, ctypes.c_uint64, _L),
    "cublasLtMatrixLayoutDestroy": (_P,),
    "cublasLtMatmulPreferenceCreate": (_P,),
    "cublasLtMatmulPreferenceDestroy": (_P,),
    "cublasLtMatmulPreferenceSetAttribute": (_P, _I, _P, _Z),
    # handle, operation, A, B, C, D layouts, preference, how many, results, how many came
    "cublasLtMatmulAlgoGetHeuristic": (_P, _P, _P, _P, _P, _P, _P, _I, _P, _P),
    # handle, operation, alpha, A, layout, B, layout, beta, C, layout, D, layout, algo,
    # workspace, its size, stream
    "cublasLtMatmul": (_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _Z, _P),
}


class BoundLibrary:
    """A loaded library whose functions have their argument types set; `call` raises on a bad status."""

    def __init__(self, path: str, functions: dict[str, tuple[type, ...]], status_text: str):
        self.path = path
        self.library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        for name, types in functions.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, ctypes.c_int
        self._status_text = getattr(self.library, status_text, None)
        if self._status_text is not None:
            self._status_text.argtypes, self._status_text.restype = (ctypes.c_int,), ctypes.c_char_p

    def call(self, function: str, *args: object) -> None:
        """Call `function`; raises `CublasError` unless it succeeds."""
        self.expect_success(function, getattr(self.library, function)(*args))

    def expect_success(self, function: str, status: int) -> None:
        """Raise `CublasError` unless `status` is success."""
        if status != 0:
            text = self._status_text(status).decode() if self._status_text is not None else ""
            raise CublasError(function, status, text)


@dataclass(frozen=True)
class CublasLibraries:
    """libcublas and libcublasLt of one installation."""

    cublas: BoundLibrary
    cublaslt: BoundLibrary


def library_folders() -> Iterator[Path]:
    """Where cuBLAS may live, most deliberate first: $KGEN_CUBLAS_DIR, pip wheels, torch, CUDA toolkits."""
    if chosen := os.environ.get("KGEN_CUBLAS_DIR"):
        yield Path(chosen)
    for entry in sys.path:
        if entry:
            for below in ("nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"):
                yield Path(entry) / below
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home) / "lib64"
    yield Path("/usr/local/cuda/lib64")
    yield from (Path(p) for p in sorted(glob.glob("/usr/local/cuda-*/lib64"), reverse=True))
    yield Path("/usr/lib/x86_64-linux-gnu")


def find_cublas(folders: Iterable[Path] | None = None) -> tuple[CublasLibraries | None, str]:
    """The first installation that loads, and a sentence on where it is or why there is none.

    libcublas finds libcublasLt by its own run path or because it is loaded already, so both are taken from
    one folder and libcublasLt first.
    """
    tried: list[str] = []
    refusals: list[str] = []
    for folder in library_folders() if folders is None else folders:
        for major in ("13", "12"):
            pair = [folder / f"lib{stem}.so.{major}" for stem in ("cublasLt", "cublas")]
            if not all(p.is_file() for p in pair):
                continue
            try:
                lt = BoundLibrary(str(pair[0]), CUBLASLT_FUNCTIONS, "cublasLtGetStatusString")
                blas = BoundLibrary(str(pair[1]), CUBLAS_FUNCTIONS, "cublasGetStatusString")
            except (OSError, AttributeError) as error:
                refusals.append(f"{folder}: {error}")
                continue
            return CublasLibraries(blas, lt), f"cuBLAS from {folder}"
        tried.append(str(folder))
    if refusals:
        return None, f"cuBLAS was found but did not load: {'; '.join(refusals)}"
    return None, (
        f"cuBLAS was not found, so there are no baselines ({len(tried)} folders searched; "
        "pip install nvidia-cublas, or set KGEN_CUBLAS_DIR)"
    )
