"""Swizzles against the tables of the PTX ISA (restated as which 16-byte chunk a cell holds)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator.swizzle import Swizzle, swizzle

MODES = list(Swizzle)

# Row r of a table: the logical chunk found at physical chunk positions 0, 1, 2 ... of 128-byte line r.
TABLES = {
    Swizzle.B128: (16, "01234567 10325476 23016745 32107654 45670123 54761032 67452301 76543210"),
    Swizzle.B64: (16, "01234567 10325476 23016745 32107654"),
    Swizzle.B32: (16, "01234567 10325476"),
    Swizzle.B128_ATOM_32B: (32, "0123 1032 2301 3210"),
    Swizzle.B128_ATOM_64B: (64, "01 10"),
}


@pytest.mark.parametrize("mode", TABLES, ids=str)
def test_published_tables(mode):
    chunk, rows = TABLES[mode]
    for r, row in enumerate(rows.split()):
        for position, logical in enumerate(row):
            assert swizzle(r * 128 + int(logical) * chunk, mode) == r * 128 + position * chunk


def test_worked_address():
    # 660 = row 5, byte 20: bits 9:7 are 5, and 660 ^ (5 << 4) = 708.
    assert swizzle(660, Swizzle.B128) == 708


def test_flip_moves_only_the_8_byte_halves_of_odd_rows():
    a = np.arange(1024)
    plain, flip = swizzle(a, Swizzle.B128_ATOM_32B), swizzle(a, Swizzle.B128_ATOM_32B_FLIP_8B)
    odd = (a >> 7) & 1
    assert np.array_equal(flip, plain ^ (odd * 8))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_periods_spans_and_chunks(mode):
    expected = {
        Swizzle.NONE: (16, 16), Swizzle.B32: (256, 32), Swizzle.B64: (512, 64), Swizzle.B128: (1024, 128),
        Swizzle.B128_ATOM_32B: (512, 128), Swizzle.B128_ATOM_32B_FLIP_8B: (512, 128),
        Swizzle.B128_ATOM_64B: (256, 128),
    }  # fmt: skip
    assert (mode.period, mode.span) == expected[mode]
    a = np.arange(4096)
    assert np.array_equal(swizzle(a + mode.period * 3, mode), swizzle(a, mode) + mode.period * 3)
    if mode is not Swizzle.NONE:
        assert not np.array_equal(swizzle(a + mode.period // 2, mode), swizzle(a, mode) + mode.period // 2)
        starts = a[:: mode.chunk]
        for i in range(mode.chunk):
            moved = swizzle(starts + i, mode)
            assert np.array_equal(moved // mode.chunk, swizzle(starts, mode) // mode.chunk)


@pytest.mark.parametrize("mode", MODES, ids=str)
@given(address=st.integers(0, (1 << 24) - 1))
def test_is_an_involution_inside_its_line(mode, address):
    moved = swizzle(address, mode)
    assert swizzle(moved, mode) == address
    assert moved >> 7 == address >> 7


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_scalars_and_arrays_agree_and_keep_their_dtype(mode):
    for dtype in (np.int64, np.uint32, np.int32):
        a = np.arange(2048, dtype=dtype).reshape(2, 1024)
        out = swizzle(a, mode)
        assert out.dtype == dtype and out.shape == a.shape
        assert out[1, 500] == swizzle(1524, mode)
