"""Register fragments: the formulas of the PTX ISA, one element at a time, and coverage of the matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator import fragments as f
from kgen.errors import EmulatorError


def covers_once(rows, cols, shape):
    """Every element of the matrix is held exactly once."""
    seen = np.zeros(shape, int)
    np.add.at(seen, (rows, cols), 1)
    return (seen == 1).all()


@pytest.mark.parametrize("n", [8, 24, 64, 128, 256])
def test_wgmma_accumulators_hold_d_once(n):
    assert f.wgmma_d(n)[0].shape == (128, n // 2)
    assert f.wgmma_d(n, packed=True)[0].shape == (128, n // 4, 2)
    for packed in (False, True):
        assert covers_once(*f.wgmma_d(n, packed), (64, n))


def test_wgmma_accumulator_formula():
    rows, cols = f.wgmma_d(64)
    for w, lane, j, h, p in np.ndindex(4, 32, 8, 2, 2):
        t, i = 32 * w + lane, 4 * j + 2 * h + p
        assert (rows[t, i], cols[t, i]) == (16 * w + lane // 4 + 8 * h, 8 * j + 2 * (lane % 4) + p)


def test_f16_accumulators_pair_the_f32_ones():
    r32, c32 = f.wgmma_d(64)
    r16, c16 = f.wgmma_d(64, packed=True)
    assert np.array_equal(r16.reshape(128, 32), r32) and np.array_equal(c16.reshape(128, 32), c32)


@pytest.mark.parametrize(("bits", "k"), [(16, 16), (8, 32), (32, 8)])
def test_wgmma_a(bits, k):
    rows, ks = f.wgmma_a(bits)
    assert rows.shape == (128, 4, 32 // bits)
    assert covers_once(rows, ks, (64, k))
    for w, lane, i, p in np.ndindex(4, 32, 4, 32 // bits):
        g, c = lane // 4, lane % 4
        expected_k = {16: 2 * c + p + 8 * (i >> 1), 8: 4 * c + p + 16 * (i >> 1), 32: c + 4 * (i >> 1)}[bits]
        at = (32 * w + lane, i, p)
        assert (rows[at], ks[at]) == (16 * w + g + 8 * (i & 1), expected_k)


MMA = [(16, 8, 2), (16, 16, 4), (32, 4, 2), (32, 8, 4), (8, 16, 2), (8, 32, 4)]


@pytest.mark.parametrize(("bits", "k", "registers"), MMA)
def test_mma_sync_operands(bits, k, registers):
    rows, ks = f.mma_a(bits, k)
    assert rows.shape == (32, registers, 32 // bits) and covers_once(rows, ks, (16, k))
    ks, ns = f.mma_b(bits, k)
    assert ks.shape == (32, registers // 2, 32 // bits) and covers_once(ks, ns, (k, 8))


def test_mma_sync_formulas_of_the_document():
    # m16n8k16, 16-bit: a0..a7 and b0..b3 as the ISA numbers them, two per register.
    rows, ks = (a.reshape(32, 8) for a in f.mma_a(16, 16))
    bks, bns = (a.reshape(32, 4) for a in f.mma_b(16, 16))
    crow, ccol = f.mma_c()
    for lane in range(32):
        g, c = lane >> 2, lane % 4
        for i in range(8):
            row = g if i in (0, 1, 4, 5) else g + 8
            assert (rows[lane, i], ks[lane, i]) == (row, c * 2 + (i & 1) + (8 if i >= 4 else 0))
        for i in range(4):
            assert (bks[lane, i], bns[lane, i]) == (c * 2 + (i & 1) + (8 if i >= 2 else 0), g)
            assert (crow[lane, i], ccol[lane, i]) == (g if i < 2 else g + 8, c * 2 + (i & 1))
    # m16n8k32, 8-bit: rows alternate every four bytes, k jumps by 16 from a8 and b4 on.
    rows, ks = (a.reshape(32, 16) for a in f.mma_a(8, 32))
    bks = f.mma_b(8, 32)[0].reshape(32, 8)
    for lane in range(32):
        g, c = lane >> 2, lane % 4
        for i in range(16):
            row = g if i // 4 in (0, 2) else g + 8
            assert (rows[lane, i], ks[lane, i]) == (row, c * 4 + (i & 3) + (16 if i >= 8 else 0))
        assert bks[lane].tolist() == [c * 4 + (i & 3) + (16 if i >= 4 else 0) for i in range(8)]


def test_mma_accumulators():
    for packed in (False, True):
        assert covers_once(*f.mma_c(packed), (16, 8))
    assert np.array_equal(f.mma_c(True)[0].reshape(32, 4), f.mma_c()[0])


def test_wgmma_repeats_mma_sync_per_warp():
    rows, cols = f.wgmma_d(8)
    for w in range(4):
        assert np.array_equal(rows[32 * w : 32 * w + 32] - 16 * w, f.mma_c()[0])
        assert np.array_equal(cols[32 * w : 32 * w + 32], f.mma_c()[1])


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix(count, transposed):
    source, element, matrix = f.ldmatrix(count, transposed)
    assert source.shape == (32, count, 2)
    assert covers_once(source.reshape(-1), element.reshape(-1), (8 * count, 8))
    for lane, q, p in np.ndindex(32, count, 2):
        row, col = lane // 4, 2 * (lane % 4) + p
        if transposed:
            row, col = col, row
        assert (source[lane, q, p], element[lane, q, p]) == (8 * q + row, col)
        assert matrix[lane, q, p] == q


def test_ldmatrix_x4_loads_an_mma_operand():
    # Matrices in the order (rows 0-7, rows 8-15) x (k 0-7, k 8-15) give the A fragment directly.
    a = np.arange(256).reshape(16, 16)
    rows = [a[8 * (q % 2) + r, 8 * (q // 2) : 8 * (q // 2) + 8] for q in range(4) for r in range(8)]
    source, element, _ = f.ldmatrix(4)
    assert np.array_equal(np.array(rows)[source, element], a[f.mma_a(16, 16)])


@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=8), st.sampled_from([8, 16, 32]))
def test_pack_inverts_unpack(words, bits):
    words = np.array(words, np.uint32)
    assert np.array_equal(f.pack(f.unpack(words, bits), bits), words)


def test_low_halves_come_first():
    assert f.pack([0x1111, 0x2222], 16) == 0x22221111
    assert f.unpack(0x44332211, 8).tolist() == [0x11, 0x22, 0x33, 0x44]


def test_shapes_that_do_not_exist_are_refused():
    for call, arguments in ((f.wgmma_d, (12,)), (f.wgmma_d, (264,)), (f.mma_a, (16, 32)), (f.ldmatrix, (3,))):
        with pytest.raises(EmulatorError):
            call(*arguments)
