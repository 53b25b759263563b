"""Tensor maps: the driver's rules, the 128-byte record, and the bytes a box moves."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgen.emulator.swizzle import Swizzle, swizzle
from kgen.emulator.tensorbox import gather_box, loaded_words
from kgen.emulator.tensormap import (
    SWIZZLES,
    DataType,
    Interleave,
    OobFill,
    TensorMap,
    TensorMapError,
    TensorStoreOverhang,
    encode_im2col,
    encode_tiled,
)
from kgen.errors import EmulatorError

BASE = 0x7F0000000000


def make(dtype=9, dim=(256, 100), strides=(512,), box=(64, 32), steps=(1, 1), address=BASE, **kw):
    return encode_tiled(dtype, address, dim, strides, box, steps, **kw)


def test_enumerations_have_the_drivers_values():
    names = "UINT8 UINT16 UINT32 INT32 UINT64 INT64 FLOAT16 FLOAT32 FLOAT64 BFLOAT16 FLOAT32_FTZ TFLOAT32"
    assert [d.name for d in DataType][:12] == names.split()
    assert [DataType.TFLOAT32_FTZ, DataType.U4X16_ALIGN8B, DataType.U6X16_ALIGN16B] == [12, 13, 15]
    assert SWIZZLES.index(Swizzle.B128) == 3 and SWIZZLES.index(Swizzle.B128_ATOM_64B) == 6
    assert (Interleave.B32, OobFill.NAN) == (2, 1)


BROKEN = [
    ({"dim": (), "strides": (), "box": (), "steps": ()}, "tensorRank"),
    ({"dim": (8,) * 6, "strides": (16,) * 5, "box": (8,) * 6, "steps": (1,) * 6}, "tensorRank"),
    ({"interleave": 1}, "tensorRank: 2, interleaved"),
    ({"address": BASE + 8}, "globalAddress"),
    ({"dim": (0, 4)}, r"globalDim\[0\]"),
    ({"dim": (256, (1 << 32) + 1)}, r"globalDim\[1\]"),
    ({"strides": (520,)}, r"globalStrides\[0\]: 520 bytes is not a multiple of 16"),
    ({"strides": (1 << 40,)}, r"globalStrides\[0\]"),
    ({"strides": ()}, "globalStrides: 0 entries"),
    ({"box": (64, 257)}, r"boxDim\[1\]"),
    ({"box": (64, 0)}, r"boxDim\[1\]"),
    ({"box": (64,)}, "boxDim: 1 entries"),
    ({"box": (12, 32)}, r"boxDim\[0\]: a row of 24 bytes is not a multiple of 16"),
    ({"box": (128, 32), "swizzle": 3}, r"boxDim\[0\]: a row of 256 bytes exceeds the 128B swizzle"),
    ({"box": (32, 32), "swizzle": 1}, r"boxDim\[0\]: a row of 64 bytes exceeds the 32B"),
    ({"steps": (1, 9)}, r"elementStrides\[1\]"),
    ({"steps": (1, 0)}, r"elementStrides\[1\]"),
    ({"steps": (1,)}, "elementStrides: 1 entries"),
    ({"swizzle": 7}, "swizzle: 7"),
    ({"dtype": 16}, "tensorDataType: 16"),
    ({"l2_promotion": 4}, "l2Promotion"),
    ({"oob_fill": 2}, "oobFill"),
    ({"dtype": DataType.UINT16, "oob_fill": 1}, "oobFill: NaN fill needs a floating type"),
    ({"dim": (256, 8, 8), "strides": (512, 4096), "box": (64, 8, 8), "steps": (1, 1, 1), "interleave": 2},
     "swizzle: interleave 32B"),
    ({"dtype": 13, "dim": (255, 8), "box": (64, 8)}, r"globalDim\[0\]: 255, must be even"),
    ({"dtype": 14, "box": (64, 8)}, r"boxDim\[0\]: 64, must be 128"),
    ({"dtype": 14, "dim": (192, 8), "box": (128, 8)}, r"globalDim\[0\]: 192, must be a multiple of 128"),
    ({"dtype": 14, "box": (128, 8), "swizzle": 6}, "swizzle: 128B, 64B atom is not allowed"),
    ({"dtype": 15, "box": (128, 8), "address": BASE + 16}, "globalAddress.*multiple of 32"),
    ({"dtype": 15, "box": (128, 8), "strides": (528,)}, r"globalStrides\[0\].*multiple of 32"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=lambda v: v if isinstance(v, str) else "")
def test_each_rule_is_refused_by_name(change, message):
    with pytest.raises(TensorMapError, match=message):
        make(**change)


def test_all_problems_are_reported_at_once():
    with pytest.raises(TensorMapError) as info:
        make(address=BASE + 4, box=(64, 300), strides=(8,))
    names = [p.split(":")[0] for p in info.value.problems]
    assert names == ["globalAddress", "globalStrides[0]", "boxDim[1]"]


def test_element_stride_0_is_ignored_without_interleave():
    assert make(steps=(99, 1)).box((0, 0)).addresses.size == 64 * 32


def test_im2col_is_refused():
    with pytest.raises(EmulatorError, match="im2col"):
        encode_im2col(1, 2, 3)


maps = st.builds(
    lambda rank, dtype, dims, strides, box, steps, swz, oob, addr: TensorMap(
        DataType(dtype), addr, dims[:rank], strides[: rank - 1], box[:rank], steps[:rank],
        Interleave(0), SWIZZLES[swz], oob_fill=OobFill(oob)),
    st.integers(1, 5), st.integers(0, 15), st.tuples(*[st.integers(1, 1 << 32)] * 5),
    st.tuples(*[st.integers(0, (1 << 40) - 1)] * 4), st.tuples(*[st.integers(1, 256)] * 5),
    st.tuples(*[st.integers(1, 8)] * 5), st.integers(0, 6), st.integers(0, 1), st.integers(0, (1 << 64) - 1),
)  # fmt: skip


@given(maps)
def test_bytes_round_trip(m):
    data = m.to_bytes()
    assert len(data) == 128
    assert TensorMap.from_bytes(data) == m


def test_foreign_and_damaged_bytes_are_refused():
    data = bytearray(make().to_bytes())
    with pytest.raises(EmulatorError, match="not one"):
        TensorMap.from_bytes(bytes(128))
    data[20] ^= 1
    with pytest.raises(EmulatorError, match="ordinary stores"):
        TensorMap.from_bytes(data)


def slow_box(m, coords):
    """One element at a time, straight from the address formula; (address, inside, offset)."""
    esz = m.dtype.bits // 8
    counts = [m.box_dim[0]] + [-(-b // s) for b, s in zip(m.box_dim[1:], m.element_strides[1:], strict=True)]
    for n, i in enumerate(itertools.product(*[range(c) for c in reversed(counts)])):
        i = i[::-1]
        c = [coords[0] + i[0]] + [
            c + k * s for c, k, s in zip(coords[1:], i[1:], m.element_strides[1:], strict=True)
        ]
        address = m.address + c[0] * esz + sum(x * s for x, s in zip(c[1:], m.global_strides, strict=True))
        yield address, all(0 <= x < d for x, d in zip(c, m.global_dim, strict=True)), n * esz


@settings(max_examples=60)
@given(st.data())
def test_box_matches_the_formula(data):
    rank = data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([DataType(v) for v in (0, 9, 7, 8)]))
    inner = 16 * 8 // dtype.bits * data.draw(st.integers(1, 2))
    box = (inner, *data.draw(st.tuples(*[st.integers(1, 4)] * (rank - 1))))
    dims = data.draw(st.tuples(*[st.integers(1, 40)] * rank))
    steps = data.draw(st.tuples(*[st.integers(1, 3)] * rank))
    strides = data.draw(st.tuples(*[st.integers(0, 64).map(lambda v: v * 16)] * (rank - 1)))
    first = st.integers(-3, 6).map(lambda v: v * 128 // dtype.bits)
    coords = data.draw(st.tuples(first, *[st.integers(-20, 45)] * (rank - 1)))
    m = encode_tiled(dtype, BASE, dims, strides, box, steps)
    b = m.box(coords)
    expected = list(slow_box(m, coords))
    assert b.addresses.tolist() == [e[0] for e in expected]
    assert b.inside.tolist() == [e[1] for e in expected]
    assert b.offsets.tolist() == [e[2] for e in expected]
    assert b.shared_bytes == b.transaction_bytes == len(expected) * dtype.bits // 8


def test_a_tail_reads_zero_and_counts_full_bytes():
    b = make().box((224, 90))
    assert b.inside.reshape(32, 64).sum(1).tolist() == [32] * 10 + [0] * 22
    assert b.transaction_bytes == 64 * 32 * 2
    assert b.fill.tolist() == [0, 0]


# Measured on Hopper: one 16-bit pattern, repeated.
NAN_FILLS = [(6, 0x7FF7), (9, 0x7FF7), (7, 0x7FF77FF7), (11, 0x7FF77FF7), (8, 0x7FF77FF77FF77FF7)]


@pytest.mark.parametrize(("dtype", "expected"), NAN_FILLS)
def test_nan_fill(dtype, expected):
    fill = make(dtype=dtype, box=(16, 8), oob_fill=1).box((0, 0)).fill
    assert int.from_bytes(fill.tobytes(), "little") == expected


@pytest.mark.parametrize("mode", SWIZZLES, ids=str)
def test_placement_uses_the_absolute_address(mode):
    inner = mode.span // 2 if mode is not Swizzle.NONE else 64
    m = make(box=(inner, 16), swizzle=mode)
    for destination in (0, 1024, 1024 + 128, 2048 + 384):
        at = m.box((0, 0)).shared_addresses(destination)
        assert np.array_equal(at, swizzle(destination + np.arange(inner * 16) * 2, mode))
        assert np.unique(at).size == at.size


def test_padded_types_occupy_16_bytes_per_16_elements():
    for dtype, packed in ((DataType.U4X16_ALIGN16B, 8), (DataType.U6X16_ALIGN16B, 12)):
        m = make(dtype=dtype, dim=(256, 64), strides=(256,), box=(128, 4))
        b = m.box((128, 2))
        assert (b.unit_bytes, b.shared_bytes, b.transaction_bytes) == (packed, 128 * 4, 8 * 4 * packed)
        assert b.addresses[:2].tolist() == [BASE + 2 * 256 + 8 * packed, BASE + 2 * 256 + 9 * packed]
        assert b.offsets[:3].tolist() == [0, 16, 32]
        with pytest.raises(EmulatorError, match="multiple of 128"):
            m.box((64, 0))


def test_packed_4_bit_type_moves_half_bytes():
    m = make(dtype=DataType.U4X16_ALIGN8B, dim=(256, 64), strides=(128,), box=(64, 4))
    b = m.box((224, 1))
    assert (b.unit_bytes, b.shared_bytes, b.transaction_bytes) == (1, 128, 128)
    assert b.addresses[0] == BASE + 128 + 112
    assert b.inside.reshape(4, 32).sum(1).tolist() == [16] * 4


def test_stores_clip_but_do_not_start_outside():
    m = make()
    assert np.array_equal(m.store_box((224, 90)).inside, m.box((224, 90)).inside)
    with pytest.raises(EmulatorError, match="negative"):
        m.store_box((-8, 0))
    with pytest.raises(EmulatorError, match="only be loaded"):
        make(dtype=14, dim=(256, 64), strides=(256,), box=(128, 4)).store_box((0, 0))


def test_stores_write_whole_16_byte_chunks():
    # Measured on Hopper: a row of 72 bytes ends 8 bytes into a chunk, and the store writes 80.
    m = make(dim=(36, 10), strides=(96,), box=(64, 4), swizzle=3)
    with pytest.raises(TensorStoreOverhang, match=r"globalDim\[0\] is 72 bytes.*writes 32 bytes past it"):
        m.store_box((0, 2))
    written = m.store_box((0, 8), allow_overhang=True).inside.reshape(4, 64)
    assert written.sum(1).tolist() == [40, 40, 0, 0] and written[:2, :40].all()
    # A load of the same box is exact; a box that ends before the edge or begins behind it is as before.
    assert m.box((0, 8)).inside.reshape(4, 64).sum(1).tolist() == [36, 36, 0, 0]
    narrow = make(dim=(36, 10), strides=(96,), box=(32, 4))
    assert narrow.store_box((0, 0)).inside.all()
    assert not narrow.store_box((40, 0)).inside.any()
    assert not narrow.store_box((0, 10)).inside.any()
    for dtype, dim, whole in ((0, 37, 48), (7, 9, 12), (13, 34, 64)):
        edge = make(dtype=dtype, dim=(dim, 2), strides=(96,), box=(64, 1))
        inside = edge.store_box((0, 0), allow_overhang=True).inside
        assert inside.sum() * (2 if dtype == 13 else 1) == whole


def test_hopper_has_no_larger_atoms_and_no_narrow_types():
    for mode in range(7):
        make(swizzle=mode, box=(16, 4))
        if mode < 4:
            make(swizzle=mode, box=(16, 4), arch="sm_90")
            continue
        with pytest.raises(TensorMapError, match=r"swizzle: 128B.*does not exist on sm_90"):
            make(swizzle=mode, box=(16, 4), arch="sm_90")
    with pytest.raises(TensorMapError, match="tensorDataType: U4X16_ALIGN8B does not exist"):
        make(dtype=13, arch="sm_90")


STARTS = [(0, 16, 8), (9, -8, 4), (7, 4, 2), (8, 2, 1), (13, 32, 16)]


@pytest.mark.parametrize(("dtype", "good", "bad"), STARTS)
def test_the_innermost_start_is_16_byte_aligned(dtype, good, bad):
    m = make(dtype=dtype, box=(64, 4))
    m.box((good, 3))
    with pytest.raises(EmulatorError, match="not a multiple of 16 bytes"):
        m.box((bad, 3))


def test_refusals_at_the_copy():
    with pytest.raises(EmulatorError, match="3 coordinates"):
        make().box((0, 0, 0))
    with pytest.raises(EmulatorError, match="32-bit"):
        make().box((0, 1 << 31))
    m = make(dim=(256, 8, 8), strides=(512, 4096), box=(64, 8, 8), steps=(1, 1, 1), interleave=1)
    with pytest.raises(EmulatorError, match="interleaved"):
        m.box((0, 0, 0))


def test_gather4_takes_rows_in_any_order():
    m = make(box=(64, 1), swizzle=3)
    b = gather_box(m, 64, (7, 3, 200, 7))
    assert b.addresses.reshape(4, 64)[:, 0].tolist() == [BASE + 128 + r * 512 for r in (7, 3, 200, 7)]
    assert b.inside.reshape(4, 64).all(1).tolist() == [True, True, False, True]
    assert b.transaction_bytes == 512
    with pytest.raises(EmulatorError, match="box of 1 row"):
        gather_box(make(), 0, (0, 1, 2, 3))


def test_replace_fields():
    m = make()
    assert m.replaced("global_address", BASE + 64).address == BASE + 64
    assert m.replaced("global_dim", 77, 1).global_dim == (256, 77)
    assert m.replaced("global_stride", 1024, 0).global_strides == (1024,)
    assert m.replaced("box_dim", 8, 1).box_dim == (64, 8)
    assert m.replaced("element_stride", 2, 1).element_strides == (1, 2)
    assert m.replaced("rank", 2).rank == 3 and m.replaced("rank", 0).global_strides == ()
    assert m.replaced("swizzle_mode", 3).replaced("swizzle_atomicity", 3).swizzle is Swizzle.B128_ATOM_64B
    # The codes of tensormap.replace differ from the driver's enumeration between 8 and 10.
    codes = [m.replaced("elemtype", code).dtype for code in (7, 8, 9, 10, 11)]
    assert [c.name for c in codes] == ["FLOAT32", "FLOAT32_FTZ", "FLOAT64", "BFLOAT16", "TFLOAT32"]
    with pytest.raises(TensorMapError, match="boxDim"):
        m.replaced("box_dim", 0, 0).check()
    with pytest.raises(EmulatorError, match="unknown field"):
        m.replaced("colour", 0)


def test_loaded_words_convert_only_the_types_that_say_so():
    words = [0x3F800FFF, 0x3F801000, 0x3F803000, 0x00000001, 0x80400000, 0x7F800000, 0x7FC00001]
    words = np.array(words, np.uint32)
    assert loaded_words("FLOAT32", words).tolist() == words.tolist()
    # Measured on Hopper: loads do not flush, round to nearest even, and know one NaN.
    for name in ("FLOAT32", "FLOAT32_FTZ"):
        assert loaded_words(name, words).tolist() == words.tolist()
    for name in ("TFLOAT32", "TFLOAT32_FTZ"):
        got = loaded_words(name, words).tolist()
        assert got == [0x3F800000, 0x3F800000, 0x3F804000, 0, 0x80400000, 0x7F800000, 0x7FFFE000]
        top = np.array([0x007FFFFF, 0x7F7FEFFF, 0xFF7FF000, 0xFFC12345], np.uint32)
        assert loaded_words(name, top).tolist() == [0x00800000, 0x7F7FE000, 0xFF800000, 0x7FFFE000]
