"""Ordinary CUDA kernels, compiled by nvcc, against numpy."""

import ml_dtypes
import numpy as np
import pytest

from kgen.emulator.launch import launch


@pytest.fixture
def ptx(compiled):
    return compiled("ordinary.cu")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("seed", [0, 1])
def test_block_reduction_with_shuffles(ptx, rng, seed):
    x, out = rng.random(5000, np.float32), np.zeros(1, np.float32)
    launch(ptx, "reduce_sum", 3, 256, [x, out, x.size], seed=seed)
    assert np.allclose(out, x.sum(), rtol=1e-5)


def test_histogram_with_shared_and_global_atomics(ptx, rng):
    x, bins = rng.integers(0, 256, 3000).astype(np.uint8), np.zeros(256, np.uint32)
    launch(ptx, "histogram", 2, 128, [x, bins, x.size])
    assert (bins == np.bincount(x, minlength=256)).all()


def test_loop_whose_trip_count_differs_by_lane(ptx, rng):
    x, steps = rng.integers(1, 2000, 200).astype(np.uint32), np.zeros(200, np.uint32)
    launch(ptx, "collatz", 2, 128, [x, steps, x.size])

    def count(v):
        n = 0
        while v != 1:
            v, n = (3 * v + 1 if v % 2 else v // 2), n + 1
        return n

    assert steps.tolist() == [count(int(v)) for v in x]


def _operate(op, x, y):
    u, v = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
    first = (u ^ v) & -(u ^ v)
    r = [
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: q if y else -7, lambda: x - q * y if y else -7,
        lambda: x << (y & 31), lambda: x >> (y & 31),
        lambda: u.bit_count() + 32 - v.bit_length() + first.bit_length(),
        lambda: (x * y) >> 32, lambda: min(x, y) ^ max(x, y),
        lambda: (u & 255) | (v & 255) << 8 | (u >> 8 & 255) << 16 | (v >> 8 & 255) << 24,
    ][op]() & 0xFFFFFFFF  # fmt: skip
    return r - 2**32 if r >> 31 else r


def test_switch_over_integer_operations(ptx, rng):
    n = 300
    op, a = rng.integers(0, 11, n).astype(np.int32), rng.integers(-(2**31), 2**31, n).astype(np.int32)
    wide = rng.integers(-(2**31), 2**31, n)
    b = np.where(rng.random(n) < 0.5, rng.integers(-9, 9, n), wide).astype(np.int32)
    r = np.zeros(n, np.int32)
    launch(ptx, "operate", 3, 128, [op, a, b, r, n])
    assert r.tolist() == [_operate(*map(int, t)) for t in zip(op, a, b, strict=True)]


def test_local_array_with_dynamic_index(ptx, rng):
    x = rng.integers(-50, 50, 800).astype(np.int32)
    expected = np.sort(x.reshape(-1, 8), 1).ravel()
    launch(ptx, "sort8", 1, 128, [x, 100])
    assert (x == expected).all()


def test_calls_of_functions_that_are_not_inlined(ptx, rng):
    x, y, count = rng.random(100, np.float32), np.zeros(100, np.float32), np.zeros(1, np.int32)
    launch(ptx, "calls", 1, 128, [x, y, count, x.size])

    def once(v):
        return np.sqrt(v * v + (v + 1) ** 2) + v / ((v + 1) + 3.0)

    assert np.allclose(y, once(x) + np.where(x > 0.5, once(-x), 0), rtol=1e-5)
    assert count[0] == 100 + (x > 0.5).sum()


def test_templates_and_lambdas_transpose_a_tile(ptx, rng):
    x, y = rng.random((37, 50)), np.zeros((50, 37))
    launch(ptx, "transpose", (4, 3), (16, 16), [x, y, 37, 50, 2.5])
    assert np.allclose(y, x.T * 2.5 + 1)


def test_half_and_bf16_arithmetic_bit_for_bit(ptx, rng):
    n, bf16 = 70, ml_dtypes.bfloat16
    a, b = (rng.standard_normal(n).astype(np.float16) for _ in range(2))
    d = rng.standard_normal(n).astype(bf16)
    c, e = np.zeros(n, np.float16), np.zeros(n, bf16)
    launch(ptx, "halves", 1, 96, [a, b, c, d, e, n])
    assert (c == (a.astype(float) * b + (a + np.float16(0.5)).astype(float)).astype(np.float16)).all()
    assert (e == (d.astype(np.float32) * (d - bf16(1)).astype(np.float32)).astype(bf16)).all()


@pytest.mark.parametrize("seed", range(3))
def test_spin_lock_within_a_warp_ends(ptx, seed):
    lock, value = np.zeros(1, np.int32), np.zeros(1, np.int32)
    launch(ptx, "locked", 2, 48, [lock, value, 2], seed=seed)
    assert value[0] == 2 * 48 * 2


def test_votes_match_scan_and_constants(ptx, rng):
    x, out, masks = rng.integers(-5, 6, 64).astype(np.int32), np.zeros(64, np.int32), np.zeros((64, 4), np.uint32)
    launch(ptx, "warps", 1, 64, [x, out, masks])
    scan = np.concatenate([np.cumsum(x[:32]), np.cumsum(x[32:])])
    assert (out == scan * np.tile([3, -1, 4, 1], 16) + 5).all()
    for half in (x[:32], x[32:]):
        got = masks[:32] if half is x[:32] or (half == x[:32]).all() else masks[32:]
        positive = sum(1 << i for i in range(32) if half[i] > 0)
        assert (got[:, 0] == positive).all()
        alike = [sum(1 << j for j in range(32) if half[j] & 3 == v & 3) for v in half]
        assert got[:, 1].tolist() == alike
        assert (got[:, 2] == (int(half.sum()) + 1) % 2**32).all()
        assert got[:, 3].tolist() == [positive if v > 0 else 0 for v in half]


def test_distributed_shared_memory_of_a_cluster(ptx):
    out = np.zeros(512, np.int32)
    launch(ptx, "ring", 8, 64, [out])
    assert out.tolist() == [(b + 1) % 4 * 1000 + 63 - t for b in range(8) for t in range(64)]


def test_softmax_in_dynamic_shared_memory(ptx, rng):
    x = rng.standard_normal((3, 100)).astype(np.float32)
    y = np.zeros_like(x)
    launch(ptx, "softmax", 3, 32, [x, y, 100], smem=400)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
