"""cuBLAS and cuBLASLt as contestants, called through their C interfaces.

cuBLAS is column-major. A row-major matrix read column-major is its transpose with the same leading dimension,
so D[m,n] = sum_k A[m,k] * B[n,k] becomes D'(n x m) = B''^T * A'' with B'' = k x n (ld ldb, transposed) and
A'' = k x m (ld lda, as it is): the first operand is B, the second A, and the extents are (n, m, k).
Arithmetic is fp32 accumulation with cuBLAS' defaults for everything else: the baseline is what a user gets.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import weakref
from collections.abc import Callable

from kgen.cublas_abi import (
    CUBLAS_COMPUTE_32F,
    CUBLAS_GEMM_DEFAULT,
    CUBLAS_OP_N,
    CUBLAS_OP_T,
    CUBLASLT_MATMUL_DESC_TRANSA,
    CUBLASLT_MATMUL_DESC_TRANSB,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
    CUDA_R,
    CublasError,
    CublasLibraries,
    LtHeuristicResult,
)
from kgen.runtime import DeviceBuffer, GemmShape

WORKSPACE_BYTES = 64 << 20
_ONE, _ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)
_ALPHA, _BETA = ctypes.byref(_ONE), ctypes.byref(_ZERO)


class CublasGemmEx:
    """cublasGemmEx with its default algorithm and workspace, on one stream (a cudaStream_t as an integer)."""

    label = "cublasGemmEx"

    def __init__(self, libraries: CublasLibraries, stream: int):
        self._blas = libraries.cublas
        self._handle = ctypes.c_void_p()
        self._blas.call("cublasCreate_v2", ctypes.byref(self._handle))
        self._blas.call("cublasSetStream_v2", self._handle, stream)
        self._gemm = self._blas.library.cublasGemmEx

    @property
    def version(self) -> str:
        """cuBLAS' own version, e.g. 13.1.0."""
        number = ctypes.c_int()
        self._blas.call("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def prepare(self, shape: GemmShape, a: int, b: int, d: int) -> Callable[[], None]:
        """A function that queues the product."""
        kind_in, kind_out = CUDA_R[shape.dtype_in], CUDA_R[shape.dtype_out]
        args = (
            self._handle,
            CUBLAS_OP_T,
            CUBLAS_OP_N,
            shape.n,
            shape.m,
            shape.k,
            _ALPHA,
            b,
            kind_in,
            shape.ldb,
            a,
            kind_in,
            shape.lda,
            _BETA,
            d,
            kind_out,
            shape.ldd,
            CUBLAS_COMPUTE_32F,
            CUBLAS_GEMM_DEFAULT,
        )
        return functools.partial(self._launch, args)

    def _launch(self, args: tuple[object, ...]) -> None:
        status = self._gemm(*args)
        if status != 0:
            self._blas.expect_success("cublasGemmEx", status)

    def close(self) -> None:
        """Give the handle back."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            self._blas.call("cublasDestroy_v2", handle)


class CublasLt:
    """A cuBLASLt handle, its stream, and a workspace that all algorithms share: they run one at a time."""

    def __init__(self, libraries: CublasLibraries, stream: int, workspace: DeviceBuffer):
        self.lt = libraries.cublaslt
        self.stream, self.workspace = stream, workspace
        self.handle = ctypes.c_void_p()
        self.lt.call("cublasLtCreate", ctypes.byref(self.handle))

    def close(self) -> None:
        """Give the handle back."""
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            self.lt.call("cublasLtDestroy", handle)


class CublasLtBest:
    """The algorithms that cuBLASLt's heuristic offers for one shape, for the fastest of them to be found.

    `ranks` are 0-based positions in the heuristic's own order; `prepare(rank, ...)` binds one to operands
    whose addresses are multiples of 256 bytes (what the heuristic assumes). Which is best is for the caller
    to time: the heuristic's first choice often is not.
    """

    label = "cuBLASLt"

    def __init__(self, context: CublasLt, shape: GemmShape, count: int = 16):
        self._context, self._lt, self.shape = context, context.lt, shape
        self._matmul = self._lt.library.cublasLtMatmul
        owned = contextlib.ExitStack()
        self.close = weakref.finalize(self, owned.close)  # gives the descriptors back, once
        self._operation = self._create(owned, "cublasLtMatmulDesc", CUBLAS_COMPUTE_32F, CUDA_R["fp32"])
        for attribute, value in (
            (CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T),
            (CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N),
        ):
            self._set("cublasLtMatmulDescSetAttribute", self._operation, attribute, ctypes.c_int32(value))
        kind_in, kind_out = CUDA_R[shape.dtype_in], CUDA_R[shape.dtype_out]
        layout = functools.partial(self._create, owned, "cublasLtMatrixLayout")
        self._layout_b = layout(kind_in, shape.k, shape.n, shape.ldb)
        self._layout_a = layout(kind_in, shape.k, shape.m, shape.lda)
        self._layout_d = layout(kind_out, shape.n, shape.m, shape.ldd)
        self._algorithms = self._ask_heuristic(owned, count)

    @property
    def ranks(self) -> range:
        """Positions of the usable algorithms; empty where cuBLASLt offers none."""
        return range(len(self._algorithms))

    def prepare(self, rank: int, a: int, b: int, d: int) -> Callable[[], None]:
        """A function that queues the product by algorithm `rank`."""
        result = self._algorithms[rank]
        args = (
            self._context.handle,
            self._operation,
            _ALPHA,
            b,
            self._layout_b,
            a,
            self._layout_a,
            _BETA,
            d,
            self._layout_d,
            d,
            self._layout_d,
            ctypes.addressof(result.algo),
            self._context.workspace.ptr,
            self._context.workspace.size,
            self._context.stream,
        )
        return functools.partial(self._launch, args)

    def _launch(self, args: tuple[object, ...]) -> None:
        status = self._matmul(*args)
        if status != 0:
            self._lt.expect_success("cublasLtMatmul", status)

    def _create(self, owned: contextlib.ExitStack, stem: str, *args: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._lt.call(f"{stem}Create", ctypes.byref(made), *args)
        owned.callback(self._lt.call, f"{stem}Destroy", made)
        return made

    def _set(
        self, function: str, target: ctypes.c_void_p, attribute: int, value: ctypes._SimpleCData
    ) -> None:
        self._lt.call(function, target, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def _ask_heuristic(self, owned: contextlib.ExitStack, count: int) -> list[LtHeuristicResult]:
        preference = self._create(owned, "cublasLtMatmulPreference")
        self._set(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            ctypes.c_uint64(self._context.workspace.size),
        )
        results, came = (LtHeuristicResult * count)(), ctypes.c_int()
        try:
            self._lt.call(
                "cublasLtMatmulAlgoGetHeuristic",
                self._context.handle,
                self._operation,
                self._layout_b,
                self._layout_a,
                self._layout_d,
                self._layout_d,
                preference,
                count,
                results,
                ctypes.byref(came),
            )
        except CublasError:
            return []  # no algorithm for this shape is an answer, not a failure of the run
        limit = self._context.workspace.size
        return [r for r in results[: came.value] if r.state == 0 and r.workspaceSize <= limit]
