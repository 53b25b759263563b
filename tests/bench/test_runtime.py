"""The C entry point and the messages of CUDA errors, without a card."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from kgen.errors import UsageError
from kgen.runtime import DeviceError, GemmLibrary, GemmShape, check, cudart, error_text

BF16 = ml_dtypes.bfloat16


def test_launch_passes_every_argument(gemm_library):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(size).astype(BF16) for size in ((3, 8), (5, 9)))
    d = np.full((3, 6), np.nan, dtype=BF16)
    library = GemmLibrary(gemm_library, "right")
    library.launch(a.ctypes.data, b.ctypes.data, d.ctypes.data, 3, 5, 7, 8, 9, 6)
    want = a[:, :7].astype(np.float32) @ b[:, :7].astype(np.float32).T
    assert np.allclose(d[:, :5].astype(np.float32), want, rtol=1e-2, atol=1e-2)
    assert np.isnan(d[:, 5].astype(np.float32)).all()
    d[:] = np.nan
    library.prepare(GemmShape(3, 5, 7, 8, 9, 6), a.ctypes.data, b.ctypes.data, d.ctypes.data, 0)()
    assert np.allclose(d[:, :5].astype(np.float32), want, rtol=1e-2, atol=1e-2)


def test_a_refusal_carries_cudas_words(gemm_library):
    with pytest.raises(
        DeviceError, match="refusing_launch: cudaErrorInvalidValue: invalid argument"
    ) as caught:
        GemmLibrary(gemm_library, "refusing").launch(0, 0, 0, 1, 1, 1, 1, 1, 1)
    assert caught.value.code == 1


def test_missing_files_and_symbols(gemm_library, tmp_path):
    with pytest.raises(UsageError, match="no such library"):
        GemmLibrary(tmp_path / "libx.so", "x")
    (tmp_path / "libx.so").write_text("text")
    with pytest.raises(UsageError, match="not a loadable library"):
        GemmLibrary(tmp_path / "libx.so", "x")
    with pytest.raises(UsageError, match="exports no other_launch"):
        GemmLibrary(gemm_library, "other")


def test_check_unpacks_results():
    rt = cudart()
    ok, bad = rt.cudaError_t.cudaSuccess, rt.cudaError_t.cudaErrorMemoryAllocation
    assert check((ok,)) is None and check((ok, 5)) == 5 and check((ok, 5, 6)) == (5, 6)
    with pytest.raises(DeviceError, match="allocating: cudaErrorMemoryAllocation: out of memory"):
        check((bad, 0), "allocating")
    assert error_text(123456) == "CUDA error 123456"


def test_shapes():
    shape = GemmShape.packed(5, 9, 17, "fp16", "fp32", ld_multiple=8)
    assert (shape.lda, shape.ldb, shape.ldd) == (24, 24, 16)
    assert (shape.bytes_a, shape.bytes_b, shape.bytes_d) == (240, 432, 320)
    assert shape.flops == 2 * 5 * 9 * 17
    with pytest.raises(UsageError, match="no GEMM from fp32"):
        GemmShape.packed(1, 1, 1, "fp32", "fp32")


def test_the_tool_needs_no_spec_packages():
    """A card's machine may have neither pydantic nor yaml nor typer."""
    code = (
        "import sys\n"
        "for name in ('pydantic', 'yaml', 'typer'): sys.modules[name] = None\n"
        "import kgen.bench.__main__, kgen.bench.worker, kgen.bench.table, kgen.plot\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
