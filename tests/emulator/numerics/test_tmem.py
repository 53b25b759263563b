"""Tensor memory: the closed forms against CuTe layouts (shape, stride), one element at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator import tmem
from kgen.emulator.descriptors import MatrixDescriptor, element_addresses, unpack_padded
from kgen.emulator.swizzle import Swizzle
from kgen.errors import EmulatorError


def cute(coord, shape, stride):
    """Offset of a flat coordinate in a CuTe mode, leftmost fastest."""
    out = 0
    for s, d in zip(shape, stride, strict=True):
        out += coord % s * d
        coord //= s
    return out


def test_addresses():
    assert tmem.split_address(0x00400123) == (0x40, 0x123)


# letter: (m, cta_group, ws, sparse), (CuTe row mode, column mode) of one CTA in virtual lane + 128 * column
LAYOUTS = {
    "D": (128, 1, False, False),
    "F": (64, 1, False, False),
    "A": (256, 2, False, False),
    "B": (128, 2, False, False),
    "C": (128, 2, False, True),
    "E": (64, 1, True, False),
    "G": (32, 1, True, False),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n", [64, 128, 256])
def test_d_layouts_follow_the_cute_atoms(name, n):
    m, group, ws, sparse = LAYOUTS[name]
    layout = tmem.d_layout(m, n, group, ws, sparse)
    assert layout.name == name == tmem.layout_name(m, group, ws, sparse)
    rows = {"D": ((128,), (1,)), "A": ((128,), (1,)), "F": ((16, 4), (1, 32)), "C": ((16, 4), (1, 32))}
    columns = {"B": ((n // 2, 2), (128, 64)), "E": ((n // 2, 2), (128, 64)), "G": ((n // 4, 4), (128, 32))}
    for r in range(0, m, 5):
        assert layout.cta[r] == r // (m // group)
        for c in range(0, n, 3):
            own = r % (m // group)
            virtual = cute(own, *rows[name]) if name in rows else own
            virtual += cute(c, *columns[name]) if name in columns else 128 * c
            assert (layout.lane[r, c], layout.column[r, c]) == (virtual % 128, virtual // 128)


@pytest.mark.parametrize("name", LAYOUTS)
def test_d_layouts_do_not_overlap(name):
    layout = tmem.d_layout(LAYOUTS[name][0], 64, *LAYOUTS[name][1:])
    place = (layout.cta[:, None] * 128 + layout.lane) * 512 + layout.column
    assert np.unique(place).size == place.size and layout.lane.max() < 128


def test_the_lane_field_selects_the_half_of_64_row_layouts():
    low, high = tmem.d_layout(64, 16, 1), tmem.d_layout(64, 16, 1, lane=16)
    assert np.array_equal(high.lane, low.lane + 16)
    assert not np.intersect1d(high.lane, low.lane).size
    with pytest.raises(EmulatorError, match="lane 16"):
        tmem.d_layout(128, 16, 1, lane=16)
    for m, group in ((256, 1), (64, 2), (32, 1)):
        with pytest.raises(EmulatorError, match="no D layout"):
            tmem.d_layout(m, 16, group)


def test_a_operand_lanes():
    assert np.array_equal(tmem.a_lanes(128, 1)[1], np.arange(128)[:, None])
    assert tmem.a_lanes(64, 1)[1][[0, 15, 16, 63], 0].tolist() == [0, 15, 32, 111]
    cta, lanes = tmem.a_lanes(128, 2)
    assert lanes.shape == (128, 2)
    assert (cta[100], lanes[100].tolist()) == (1, [36, 100])
    assert tmem.a_lanes(256, 2)[1].shape == (256, 1)


def test_a_operand_codes():
    words = np.array([[0x44332211, 0x88776655]], np.uint32)
    assert tmem.a_codes(words, 4, 16).tolist() == [[0x2211, 0x4433, 0x6655, 0x8877]]
    assert tmem.a_codes(words, 8, 8).tolist() == [[0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]]
    assert tmem.a_codes(words, 2, 32).tolist() == [[0x44332211, 0x88776655]]
    assert tmem.a_codes(words[:, :1], 8, 4, packed=True).tolist() == [[1, 1, 2, 2, 3, 3, 4, 4]]
    assert tmem.a_codes(words[:, :1], 4, 6).tolist() == [[0x11, 0x22, 0x33, 0x04]]
    assert tmem.a_codes(words[:, :1], 4, 4).tolist() == [[0x4, 0x8, 0xC, 0x1]]
    with pytest.raises(EmulatorError, match="do not hold"):
        tmem.a_codes(words, 16, 16)


REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
ATOMS = [(s, n) for s, r in REGISTERS.items() for n in (1, 2, 4, 8, 16, 32, 64, 128) if r * n <= 128]


def formula(shape, t, i, imm):
    """The element map, per thread and register, as the reference states it."""
    return {
        "32x32b": lambda: (t, i),
        "16x64b": lambda: ((t >> 2) + 8 * (t & 1), 2 * i + ((t >> 1) & 1)),
        "16x128b": lambda: ((t >> 2) + 8 * (i & 1), 4 * (i >> 1) + (t & 3)),
        "16x256b": lambda: ((t >> 2) + 8 * ((i >> 1) & 1), 8 * (i >> 2) + 2 * (t & 3) + (i & 1)),
        "16x32bx2": lambda: (t & 15, i + (t >> 4) * imm),
    }[shape]()


@pytest.mark.parametrize(("shape", "num"), ATOMS)
def test_ld_maps(shape, num):
    lanes, registers, columns = tmem.LD_SHAPES[shape]
    row, col = tmem.ld_map(shape, num, half_split=num)
    assert row.shape == (32, registers * num)
    for t in range(32):
        for i in range(registers * num):
            assert (row[t, i], col[t, i]) == formula(shape, t, i, num)
    # Every word of the covered rectangle exactly once; the two halves of 16x32bx2 lie side by side.
    width = columns * num * (2 if shape == "16x32bx2" else 1)
    seen = np.zeros((lanes, width), int)
    np.add.at(seen, (row, col), 1)
    assert (seen == 1).all()


@pytest.mark.parametrize(("shape", "num"), ATOMS)
def test_packed_ld_maps_take_two_columns_per_register(shape, num):
    row, col = tmem.ld_map(shape, num, half_split=num)
    row16, col16 = tmem.ld_map(shape, num, pack16=True, half_split=2 * num)
    assert row16.shape == (*row.shape, 2)
    for h in (0, 1):
        assert np.array_equal(row16[..., h], row)
        assert np.array_equal(col16[..., h], 2 * col + h)


def test_the_immediate_of_16x32bx2_counts_columns():
    _, col = tmem.ld_map("16x32bx2", 4, half_split=100)
    assert col[0].tolist() == [0, 1, 2, 3] and col[16].tolist() == [100, 101, 102, 103]
    _, col = tmem.ld_map("16x32bx2", 1, pack16=True, half_split=7)
    assert col[:, 0].tolist() == [[0, 1]] * 16 + [[7, 8]] * 16


def test_16x256b_is_the_accumulator_fragment():
    from kgen.emulator.fragments import mma_c, wgmma_d

    row, col = tmem.ld_map("16x256b", 1)
    assert np.array_equal(row, mma_c()[0]) and np.array_equal(col, mma_c()[1])
    row, col = tmem.ld_map("16x256b", 8)
    assert np.array_equal(row, wgmma_d(64)[0][:32]) and np.array_equal(col, wgmma_d(64)[1][:32])


def test_ld_shapes_that_do_not_exist():
    for shape, num in (("16x256b", 64), ("16x128b", 128), ("32x32b", 3), ("64x32b", 1)):
        with pytest.raises(EmulatorError, match="does not exist"):
            tmem.ld_map(shape, num)


def test_a_warp_reaches_its_quarter_only():
    tmem.check_ld_lane("32x32b", 96, 7)
    tmem.check_ld_lane("16x256b", 48, 1)
    for shape, lane, warp in (("32x32b", 0, 1), ("32x32b", 16, 0), ("16x64b", 8, 0), ("16x64b", 64, 1)):
        with pytest.raises(EmulatorError, match="may name"):
            tmem.check_ld_lane(shape, lane, warp)


def test_cp_lanes():
    assert tmem.cp_lanes("128x256b").tolist() == [[r] for r in range(128)]
    assert tmem.cp_lanes("128x128b").tolist() == [[r] for r in range(128)]
    by_halves = tmem.cp_lanes("64x128b.warpx2::02_13")
    assert by_halves[[0, 63]].tolist() == [[0, 64], [63, 127]]
    by_quarters = tmem.cp_lanes("64x128b.warpx2::01_23")
    assert by_quarters[[0, 31, 32, 63]].tolist() == [[0, 32], [31, 63], [64, 96], [95, 127]]
    assert tmem.cp_lanes("32x128b.warpx4")[5].tolist() == [5, 37, 69, 101]
    assert tmem.cp_lanes("4x256b").tolist() == [[0], [32], [64], [96]]
    for shape, (rows, _) in tmem.CP_SHAPES.items():
        lanes = tmem.cp_lanes(shape)
        assert lanes.shape[0] == rows and np.unique(lanes).size == lanes.size
        if shape != "4x256b":
            assert np.array_equal(np.sort(lanes.reshape(-1)), np.arange(128))
    with pytest.raises(EmulatorError, match="does not exist"):
        tmem.cp_lanes("64x128b")


@given(st.sampled_from([4, 6]), st.lists(st.integers(0, 63), min_size=1, max_size=16))
def test_containers(bits, codes):
    codes = np.array(codes, np.uint8) & ((1 << bits) - 1)
    data = tmem.container_bytes(codes, bits)
    assert np.array_equal(tmem.container_codes(data, bits), codes)
    assert not (data & (0xC3 if bits == 4 else 0xC0)).any()


def test_decompression_of_a_padded_group():
    chunk = np.arange(16, dtype=np.uint8)  # 16 fp4: the nibbles of bytes 0..7
    codes = unpack_padded(chunk, 4)
    assert codes.tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0]
    assert tmem.container_bytes(codes, 4)[2] == 1 << 2


def test_scale_atom():
    assert tmem.scale_atom_offset(0, 0, 4) == 0
    assert tmem.scale_atom_offset(33, 2, 4) == 16 + 4 + 2
    assert tmem.scale_atom_offset(128, 0, 6) == 2 * 512  # two atoms along K come first
    assert tmem.scale_atom_offset(127, 5, 6) == 512 + 31 * 16 + 3 * 4 + 1
    row, block = np.arange(256)[:, None], np.arange(8)[None, :]
    offsets = tmem.scale_atom_offset(row, block, 8)
    assert np.array_equal(np.sort(offsets.reshape(-1)), np.arange(256 * 8))


@pytest.mark.parametrize("rows", [64, 128, 192, 256])
def test_scale_layouts_follow_the_cute_atoms(rows):
    layout = tmem.scale_b_layout(rows, 256, 2)
    for x in range(rows):
        for rep in range(4):
            virtual = cute(x, (32, rows // 32), (1, 512)) + 32 * rep  # lane + 128 * byte
            assert (layout.lane[x, rep], layout.column[x]) == (virtual % 128, virtual // 128 // 4)
    if rows == 192:
        return
    layout = tmem.scale_b_layout(rows, 128, 2)
    for x in range(rows):
        for rep in range(2):
            virtual = cute(x, (32, rows // 2 // 32, 2), (1, 512, 64)) + 32 * rep
            assert (layout.lane[x, rep], layout.column[x]) == (virtual % 128, virtual // 128 // 4)


def test_scale_a_layouts():
    whole = tmem.scale_a_layout(128, 1)
    assert (whole.lane[70].tolist(), whole.column[70], whole.cta[70]) == ([6, 38, 70, 102], 2, 0)
    pair = tmem.scale_a_layout(256, 2)
    assert (pair.lane[198].tolist(), pair.column[198], pair.cta[198]) == ([6, 38, 70, 102], 2, 1)
    half = tmem.scale_a_layout(128, 2)
    assert (half.column[127], half.cta[127]) == (1, 1)
    assert tmem.scale_b_layout(192, 128, 1).column.max() + 1 == 6
    with pytest.raises(EmulatorError, match="M = 64"):
        tmem.scale_a_layout(64, 1)


def test_cp_32x128b_turns_the_shared_atom_into_the_scale_layout():
    atom = np.arange(512).reshape(32, 16)  # row r, byte j of the copy's source
    word = np.full((128, 16), -1)
    for copy in tmem.cp_lanes("32x128b.warpx4").T:
        word[copy] = atom
    layout = tmem.scale_a_layout(128, 1)
    for m in range(128):
        for block in range(4):
            for lane in layout.lane[m]:
                assert word[lane, 4 * layout.column[m] + block] == tmem.scale_atom_offset(m, block, 4)
    # And the copy's usual descriptor (no swizzle, SBO 128) reads those rows in order.
    d = MatrixDescriptor("sm_100", 0, 0, 128, Swizzle.NONE)
    assert np.array_equal(element_addresses(d, 32, 16, 1), atom)


def test_scale_bytes():
    assert [tmem.scale_bytes(1, i) for i in range(4)] == [[0], [1], [2], [3]]
    assert tmem.scale_bytes(2, 2) == [2, 3] and tmem.scale_bytes(4, 0) == [0, 1, 2, 3]
    for vec, first in ((2, 1), (4, 2), (3, 0), (1, 4)):
        with pytest.raises(EmulatorError, match="cannot start"):
            tmem.scale_bytes(vec, first)
