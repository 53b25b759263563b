"""What counts as right, and the comparison on the host."""

from __future__ import annotations

import ctypes
import math

import ml_dtypes
import numpy as np
import pytest

from kgen.bench.check import ROUNDING, HostComparer, error_limit, relative_error
from kgen.bench.contestants import worst_of
from kgen.bench.operands import BLOCK_ELEMENTS, pieces, plan_sets, set_bytes
from kgen.runtime import GemmShape

NUMPY = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}


def compare(shape: GemmShape, d: np.ndarray, want: np.ndarray) -> float:
    return HostComparer(ctypes.memmove, 256).compare(shape, d.ctypes.data, want.ctypes.data)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_rounding_alone_is_right_and_twice_as_much_is_not(dtype):
    shape = GemmShape(61, 67, 1, 1, 1, 72, "bf16", dtype)
    want = np.random.default_rng(0).standard_normal((61, 67), dtype=np.float32)
    d = np.full((61, 72), np.nan, dtype=NUMPY[dtype])
    d[:, :67] = want.astype(NUMPY[dtype])
    error = compare(shape, d, want)
    assert error <= 1.1 * ROUNDING[dtype]
    if dtype != "fp32":
        assert error >= 0.8 * ROUNDING[dtype]
    d[:, :67] = (want * (1 + 3 * ROUNDING[dtype])).astype(NUMPY[dtype])
    assert compare(shape, d, want) > error_limit(dtype, None)


def test_one_missing_element_is_seen():
    shape = GemmShape.packed(33, 8, 1)
    want = np.ones((33, 8), dtype=np.float32)
    d = want.astype(ml_dtypes.bfloat16)
    d[32, 7] = np.nan
    assert math.isnan(compare(shape, d, want))


def test_relative_error_at_the_edges():
    assert relative_error(0.0, 0.0) == 0.0
    assert relative_error(1.0, 0.0) == math.inf
    assert math.isnan(relative_error(math.nan, 1.0))
    assert not relative_error(math.nan, 1.0) <= 1.0


def test_a_wrong_cublas_does_not_widen_the_limit():
    assert error_limit("bf16", 2e-3) == 4e-3
    for useless in (None, 1e-4, 0.5, math.nan, math.inf):
        assert error_limit("bf16", useless) == 2 * ROUNDING["bf16"]


def test_the_worst_error_counts_and_nan_is_the_worst():
    assert worst_of([1e-3, 3e-3, 2e-3]) == 3e-3
    assert math.isnan(worst_of([1e-3, math.nan, 2e-3]))
    assert math.isnan(worst_of([]))


def test_sets_exceed_the_l2_several_times():
    l2 = 60 << 20
    small, large = GemmShape.packed(1024, 1024, 1024), GemmShape.packed(8192, 8192, 8192)
    assert plan_sets(small, l2, 130 << 30, 10).sets * set_bytes(small) >= 4 * l2
    assert plan_sets(large, l2, 130 << 30, 10).sets == 3
    assert plan_sets(large, l2, 130 << 30, 10).slots == 3
    tight = plan_sets(large, l2, 2 << 30, 10)
    assert tight.sets == 3 and tight.slots == 1


def test_pieces_tile_a_target():
    assert pieces(10, 3, 4) == [(0, 3, 1), (1, 0, 4), (5, 0, 4), (9, 0, 1)]
    assert pieces(2, 9, 4) == [(0, 1, 2)]
    assert BLOCK_ELEMENTS % 2 == 1
