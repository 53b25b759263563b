"""Is a timed result right? The relative Frobenius error against a reference in fp32.

The reference is cuBLAS' own product of the same operands with an fp32 result; without cuBLAS, a plain fp32
kernel. The comparison runs on the card (compiled by NVRTC, since copying gigabytes to the host would take
longer than the timing) or, without NVRTC, on the host.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kgen.baselines import CublasGemmEx
from kgen.errors import ToolchainError
from kgen.runtime import (
    DTYPE_BYTES,
    Card,
    DeviceBuffer,
    DeviceError,
    GemmShape,
    Stream,
    copy,
)

# What rounding a right result to the output type costs by itself: the spacing of the type's numbers over
# sqrt(12), averaged over a binade. For fp32 it is what two orders of summation may differ by on the tensor
# cores, whose adders drop bits.
ROUNDING = {"bf16": 1.7e-3, "fp16": 2.1e-4, "fp32": 5e-5}

_SOURCE = Path(__file__).with_name("check.cu")
_DTYPE_CODES = {"fp32": 0, "fp16": 1, "bf16": 2}  # the enum of check.cu


def error_limit(dtype_out: str, cublas_error: float | None) -> float:
    """Twice what cuBLAS itself is off by in this output type, or twice the rounding where that is more.

    A cuBLAS that is off by more than four roundings is no measure: it then is wrong itself.
    """
    rounding = ROUNDING[dtype_out]
    if cublas_error is None or not cublas_error <= 4 * rounding:
        return 2 * rounding
    return 2 * max(rounding, cublas_error)


def relative_error(squared_difference: float, squared_norm: float) -> float:
    """||d - r|| / ||r||; infinite where only the reference vanishes, NaN where any element was."""
    if squared_norm == 0:
        return 0.0 if squared_difference == 0 else float("inf")
    return float(np.sqrt(squared_difference / squared_norm))


class Comparer(Protocol):
    """Squared error of a device matrix against a packed fp32 one."""

    def compare(self, shape: GemmShape, d: int, reference: int) -> float:
        """The relative Frobenius error; all work on the device must be done."""


class HostComparer:
    """Copies both matrices to the host, a few rows at a time."""

    def __init__(self, fetch: Callable[[int, int, int], None] = copy, chunk_bytes: int = 256 << 20):
        self._fetch, self._chunk = fetch, chunk_bytes

    def compare(self, shape: GemmShape, d: int, reference: int) -> float:
        """See `Comparer`. `fetch(dst, src, bytes)` brings the bytes over."""
        width = DTYPE_BYTES[shape.dtype_out]
        step = max(1, self._chunk // (4 * shape.ldd))
        difference = norm = 0.0
        for row in range(0, shape.m, step):
            rows = min(step, shape.m - row)
            raw = np.zeros((rows, shape.ldd), dtype=np.uint16 if width == 2 else np.uint32)
            # The last row of the last buffer may end at its last element.
            size = ((rows - 1) * shape.ldd + shape.n) * width
            self._fetch(raw.ctypes.data, d + row * shape.ldd * width, size)
            want = np.empty((rows, shape.n), dtype=np.float32)
            self._fetch(want.ctypes.data, reference + row * shape.n * 4, want.nbytes)
            got = to_float32(raw, shape.dtype_out)[:, : shape.n].astype(np.float64)
            difference += float(np.sum((got - want) ** 2))
            norm += float(np.sum(want.astype(np.float64) ** 2))
        return relative_error(difference, norm)


def to_float32(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers that bit patterns of a dtype stand for."""
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(np.float16).astype(np.float32) if dtype == "fp16" else bits.view(np.float32)


def compile_check(arch: str) -> bytes:
    """A cubin of check.cu for an architecture such as sm_90. Raises `ToolchainError` without NVRTC."""
    try:
        from cuda.bindings import nvrtc

        error, program = nvrtc.nvrtcCreateProgram(_SOURCE.read_bytes(), b"check.cu", 0, [], [])
    except Exception as missing:  # the bindings raise types of their own for a library they cannot load
        raise ToolchainError(f"NVRTC is not available: {missing}") from missing
    if int(error) != 0:
        raise ToolchainError(f"NVRTC took no program: {error}")
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={arch}".encode()])
    if int(error) != 0:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise ToolchainError(f"NVRTC refused check.cu: {log.decode(errors='replace')}")
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(program)
    return cubin


class DeviceKernels:
    """check.cu on the card. Raises `ToolchainError` without NVRTC, `DeviceError` where it does not load."""

    def __init__(self, card: Card, stream: Stream):
        from cuda.bindings import driver

        self._driver, self._stream, self._blocks = driver, stream, 8 * card.sm_count
        self._module = self._check(driver.cuModuleLoadData(compile_check(card.sm_arch)))
        self._squared_error = self._check(driver.cuModuleGetFunction(self._module, b"squared_error"))
        self._plain_gemm = self._check(driver.cuModuleGetFunction(self._module, b"plain_gemm"))
        self._sums = DeviceBuffer(16)

    def _check(self, result: tuple[Any, ...]) -> Any:
        if int(result[0]) != 0:
            raise DeviceError(f"the result check: {result[0]}")
        return result[1] if len(result) > 1 else None

    def _launch(
        self, kernel: Any, grid: tuple[int, int], block: tuple[int, int], args: list[tuple[int, Any]]
    ) -> None:
        values, types = tuple(value for value, _ in args), tuple(kind for _, kind in args)
        self._check(
            self._driver.cuLaunchKernel(
                kernel, *grid, 1, *block, 1, 0, self._stream.handle, (values, types), 0
            )
        )

    def compare(self, shape: GemmShape, d: int, reference: int) -> float:
        """See `Comparer`."""
        pointer, long = ctypes.c_void_p, ctypes.c_longlong
        self._sums.fill_byte(0, self._stream)
        self._launch(
            self._squared_error,
            (self._blocks, 1),
            (256, 1),
            [
                (d, pointer),
                (shape.ldd, long),
                (_DTYPE_CODES[shape.dtype_out], ctypes.c_int),
                (reference, pointer),
                (shape.m, long),
                (shape.n, long),
                (self._sums.ptr, pointer),
            ],
        )
        self._stream.synchronize()
        sums = np.empty(2, dtype=np.float64)
        copy(sums.ctypes.data, self._sums.ptr, sums.nbytes)
        return relative_error(*sums)

    def plain_gemm(self, shape: GemmShape, a: int, b: int, d: int) -> None:
        """Queue D = A * B^T with a packed fp32 D."""
        pointer, long = ctypes.c_void_p, ctypes.c_longlong
        self._launch(
            self._plain_gemm,
            (min(-(-shape.n // 16), 65_535), min(-(-shape.m // 16), 65_535)),
            (16, 16),
            [
                (a, pointer),
                (shape.lda, long),
                (b, pointer),
                (shape.ldb, long),
                (_DTYPE_CODES[shape.dtype_in], ctypes.c_int),
                (d, pointer),
                (shape.m, long),
                (shape.n, long),
                (shape.k, long),
            ],
        )


class Checker:
    """Holds one reference at a time and measures results against it."""

    def __init__(self, stream: Stream, gemm: CublasGemmEx | None, kernels: DeviceKernels | None):
        if gemm is None and kernels is None:
            raise ToolchainError(
                "neither cuBLAS nor NVRTC was found, so no result could be checked, and an unchecked speed "
                "is not reported (pip install nvidia-cublas or nvidia-cuda-nvrtc)"
            )
        self._stream, self._gemm, self._kernels = stream, gemm, kernels
        self._comparer: Comparer = kernels or HostComparer()
        self._reference: DeviceBuffer | None = None

    @property
    def reference(self) -> str:
        """What results are compared with."""
        return "cublasGemmEx in fp32" if self._gemm is not None else "a plain fp32 kernel"

    def load(self, shape: GemmShape, a: int, b: int) -> None:
        """Compute the reference for these operands."""
        size = shape.m * shape.n * 4
        if self._reference is None or self._reference.size < size:
            self.free()
            self._reference = DeviceBuffer(size)
        self._reference.fill_byte(0xFF, self._stream)
        if self._gemm is not None:
            packed = dataclasses.replace(shape, ldd=shape.n, dtype_out="fp32")
            self._gemm.prepare(packed, a, b, self._reference.ptr)()
        elif self._kernels is not None:
            self._kernels.plain_gemm(shape, a, b, self._reference.ptr)
        self._stream.synchronize()

    def error(self, shape: GemmShape, d: int) -> float:
        """Relative error of D at address `d`; whatever writes it must have been queued on the same stream."""
        if self._reference is None:
            raise ValueError("no reference loaded")
        self._stream.synchronize()
        return self._comparer.compare(shape, d, self._reference.ptr)

    def free(self) -> None:
        """Give the reference's memory back."""
        if self._reference is not None:
            self._reference.free()
            self._reference = None
