"""The column-major mapping of both baselines, on cuBLAS made of host memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kgen.baselines import CublasGemmEx, CublasLt, CublasLtBest
from kgen.cublas_abi import CublasError, find_cublas
from kgen.runtime import GemmShape

from .host_card import HostBuffer

NUMPY = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}
SHAPES = [
    GemmShape.packed(5, 7, 3, "bf16", "fp32"),
    GemmShape.packed(7, 5, 11, "fp16", "fp16"),
    GemmShape(4, 6, 9, lda=12, ldb=10, ldd=8, dtype_in="bf16", dtype_out="bf16"),
]


@pytest.fixture
def libraries(cublas_folder):
    found, note = find_cublas([cublas_folder])
    assert found is not None, note
    return found


def operands(shape: GemmShape):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((shape.m, shape.lda)).astype(NUMPY[shape.dtype_in])
    b = rng.standard_normal((shape.n, shape.ldb)).astype(NUMPY[shape.dtype_in])
    d = np.full((shape.m, shape.ldd), np.nan, dtype=NUMPY[shape.dtype_out])
    return a, b, d


def right(shape: GemmShape, a, b, d) -> bool:
    want = a[:, : shape.k].astype(np.float64) @ b[:, : shape.k].astype(np.float64).T
    close = np.allclose(d[:, : shape.n].astype(np.float64), want, rtol=1e-2, atol=1e-2)
    return close and bool(np.isnan(d[:, shape.n :].astype(np.float32)).all())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_gemm_ex_computes_the_row_major_product(libraries, shape):
    a, b, d = operands(shape)
    gemm = CublasGemmEx(libraries, stream=0)
    assert gemm.version == "13.1.2"
    gemm.prepare(shape, a.ctypes.data, b.ctypes.data, d.ctypes.data)()
    assert right(shape, a, b, d)
    gemm.close()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_every_lt_algorithm_computes_the_row_major_product(libraries, shape):
    context = CublasLt(libraries, 0, HostBuffer(1 << 10))
    best = CublasLtBest(context, shape, count=16)
    assert len(best.ranks) == 4  # five came, one of them with a bad state
    for rank in best.ranks:
        a, b, d = operands(shape)
        best.prepare(rank, a.ctypes.data, b.ctypes.data, d.ctypes.data)()
        assert right(shape, a, b, d)
    best.close()
    best.close()
    context.close()


def test_no_heuristic_is_no_failure(libraries):
    context = CublasLt(libraries, 0, HostBuffer(1 << 10))
    assert not CublasLtBest(context, SHAPES[0], count=0).ranks


def test_a_bad_status_names_the_function(libraries):
    gemm = CublasGemmEx(libraries, stream=0)
    too_narrow = GemmShape(4, 6, 9, lda=8, ldb=9, ldd=6)
    with pytest.raises(CublasError, match=r"cublasGemmEx: an invalid value \(7\)"):
        gemm.prepare(too_narrow, 1, 1, 1)()
