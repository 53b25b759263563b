"""Descriptors: the encoded constants, worked addresses and canonical examples of the PTX ISA."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator.descriptors import (
    K_MAJOR,
    MN_MAJOR,
    TCGEN05_SWIZZLES,
    WGMMA_SWIZZLES,
    DescriptorError,
    MatrixDescriptor,
    check_operand,
    chunk_addresses,
    decode_tcgen05,
    decode_wgmma,
    element_addresses,
    read_operand,
    unpack_padded,
)
from kgen.emulator.swizzle import Swizzle, swizzle

ENCODED = [
    (decode_tcgen05, 0x4000404000000040, (0x400, 0, 1024, Swizzle.B128)),
    (decode_tcgen05, 0x4000404002000040, (0x400, 8192, 1024, Swizzle.B128)),
    (decode_tcgen05, 0x0000400800000040, (0x400, 0, 128, Swizzle.NONE)),
    (decode_wgmma, 0x4000004000010040, (0x400, 16, 1024, Swizzle.B128)),
    (decode_wgmma, 0x4000004002000040, (0x400, 8192, 1024, Swizzle.B128)),
]


@pytest.mark.parametrize(("decode", "word", "fields"), ENCODED)
def test_encoded_examples(decode, word, fields):
    desc = decode(word)
    assert (desc.start, desc.lbo, desc.sbo, desc.swizzle) == fields
    assert (desc.base_offset, desc.lbo_absolute) == (0, False)
    assert desc.encode() == word


def assemble(fields, arch):
    start, lbo, sbo, base, absolute, code = fields
    word = start | lbo << 16 | sbo << 32 | base << 49
    if arch == "sm_100":
        return word | 1 << 46 | absolute << 52 | list(TCGEN05_SWIZZLES)[code] << 61
    return word | list(WGMMA_SWIZZLES)[code % 4] << 62


fields = st.tuples(*[st.integers(0, 0x3FFF)] * 3, st.integers(0, 7), st.integers(0, 1), st.integers(0, 4))


@given(fields)
def test_decode_then_encode_is_the_identity(f):
    assert decode_tcgen05(assemble(f, "sm_100")).encode() == assemble(f, "sm_100")
    assert decode_wgmma(assemble(f, "sm_90")).encode() == assemble(f, "sm_90")


@given(st.integers(0, (1 << 64) - 1))
def test_every_bit_pattern_is_either_kept_whole_or_refused(word):
    for decode in (decode_tcgen05, decode_wgmma):
        try:
            desc = decode(word)
        except DescriptorError:
            continue
        assert desc.encode() == word


@pytest.mark.parametrize(
    ("decode", "flip", "message"),
    [
        (decode_tcgen05, 14, "bits 15:14"),
        (decode_tcgen05, 31, "bits 31:30"),
        (decode_tcgen05, 46, "bits 48:46 must be 0b1, is 0b0"),
        (decode_tcgen05, 47, "bits 48:46 must be 0b1, is 0b11"),
        (decode_tcgen05, 53, "bits 60:53"),
        (decode_tcgen05, 60, "bits 60:53"),
        (decode_tcgen05, 61, "swizzle code 3 is invalid"),
        (decode_tcgen05, 63, None),  # code 6, the 32B swizzle
        (decode_wgmma, 15, "bits 15:14"),
        (decode_wgmma, 30, "bits 31:30"),
        (decode_wgmma, 46, "bits 48:46 must be 0b0"),
        (decode_wgmma, 52, "bits 61:52"),
        (decode_wgmma, 61, "bits 61:52"),
    ],
)
def test_malformed_fields_are_named(decode, flip, message):
    good = 0x4000404000000040 if decode is decode_tcgen05 else 0x4000004000010040
    if message is None:
        assert decode(good ^ 1 << flip).swizzle is Swizzle.B32
        return
    with pytest.raises(DescriptorError, match=message):
        decode(good ^ 1 << flip)


def test_all_malformed_fields_are_named_at_once():
    with pytest.raises(DescriptorError) as info:
        decode_tcgen05(0xE000000040004000)
    assert len(info.value.problems) == 4  # 15:14, 31:30, 48:46, swizzle code 7


def test_encode_refuses_what_does_not_fit():
    with pytest.raises(DescriptorError, match=r"start address 0x8 .*SBO 0x40000"):
        MatrixDescriptor("sm_90", 8, 0, 1 << 18, Swizzle.NONE).encode()
    with pytest.raises(DescriptorError, match="no code on sm_90"):
        MatrixDescriptor("sm_90", 0, 0, 0, Swizzle.B128_ATOM_32B).encode()


def desc(mode, lbo=0, sbo=0, start=0, arch="sm_100"):
    return MatrixDescriptor(arch, start, lbo, sbo, mode)


def test_worked_numbers_k_major():
    at = element_addresses(desc(Swizzle.B128, 0, 1024), 128, 64, 2)
    assert at.shape == (128, 64)
    expected = {(0, 0): 0, (1, 0): 144, (5, 10): 708, (7, 63): 910, (8, 0): 1024, (9, 17): 1202,
                (127, 63): 16270}  # fmt: skip
    assert {key: at[key] for key in expected} == expected


def test_worked_numbers_mn_major():
    at = element_addresses(desc(Swizzle.B128, 8192, 1024), 128, 64, 2, MN_MAJOR)
    expected = {(0, 0): 0, (8, 0): 16, (0, 1): 144, (10, 5): 708, (63, 7): 910, (64, 0): 8192, (0, 8): 1024,
                (70, 19): 10684, (127, 63): 16270}  # fmt: skip
    assert {key: at[key] for key in expected} == expected
    at = element_addresses(desc(Swizzle.B128, 1024, 2048), 128, 64, 2, MN_MAJOR)
    expected = {(64, 0): 1024, (0, 8): 2048, (70, 19): 5564, (127, 63): 16270}
    assert {key: at[key] for key in expected} == expected


def cute(shape, stride, coord):
    """Offset of a flat coordinate in a CuTe mode (shape, stride), leftmost fastest."""
    out = 0
    for s, d in zip(shape, stride, strict=True):
        out += coord % s * d
        coord //= s
    return out


# (mode, major, esz, LBO, SBO bytes, row mode, k mode): the PTX ISA's printed layouts, strides in elements.
CANONICAL = [
    (Swizzle.NONE, K_MAJOR, 4, 64 * 4, 32 * 4, ((8, 2), (4, 32)), ((4, 4), (1, 64))),
    (Swizzle.B32, K_MAJOR, 4, 0, 64 * 4, ((8, 2), (8, 64)), ((4, 2), (1, 4))),
    (Swizzle.NONE, MN_MAJOR, 2, 128 * 2, 64 * 2, ((8, 1, 2), (1, 8, 64)), ((8, 2), (8, 128))),
    (Swizzle.B32, MN_MAJOR, 2, 128 * 2, 256 * 2, ((8, 2, 2), (1, 8, 128)), ((8, 2), (16, 256))),
    (Swizzle.B64, MN_MAJOR, 2, 256 * 2, 512 * 2, ((8, 4, 2), (1, 8, 256)), ((8, 2), (32, 512))),
    (Swizzle.B128, MN_MAJOR, 2, 512 * 2, 1024 * 2, ((8, 8, 2), (1, 8, 512)), ((8, 2), (64, 1024))),
    (Swizzle.B128, K_MAJOR, 2, 0, 1024, ((8, 2), (64, 512)), ((8, 8), (1, 8))),
    (Swizzle.B64, K_MAJOR, 2, 0, 512, ((8, 2), (32, 256)), ((8, 4), (1, 8))),
]


@pytest.mark.parametrize("case", CANONICAL, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}B")
def test_canonical_layouts(case):
    mode, major, esz, lbo, sbo, row, k = case
    rows, ks = int(np.prod(row[0])), int(np.prod(k[0]))
    at = element_addresses(desc(mode, lbo, sbo), rows, ks, esz, major)
    for r in range(rows):
        for c in range(ks):
            assert at[r, c] == swizzle((cute(*row, r) + cute(*k, c)) * esz, mode)


LEGAL = [
    (mode, major, esz)
    for mode in TCGEN05_SWIZZLES.values()
    for major in (K_MAJOR, MN_MAJOR)
    for esz in (1, 2, 4)
    if major == K_MAJOR or (esz == 4) == (mode is Swizzle.B128_ATOM_32B)
]


@pytest.mark.parametrize(("mode", "major", "esz"), LEGAL, ids=str)
def test_dense_tiles_are_read_exactly_once(mode, major, esz):
    # Offsets that pack the atoms of a 128 x 32-byte operand without holes.
    rows, ks = 128, 32 // esz
    if major == K_MAJOR:
        lbo, sbo = (rows * 16, 128) if mode is Swizzle.NONE else (0, 8 * mode.span)
    else:
        per, depth = mode.span // esz, 4 if mode is Swizzle.B128_ATOM_32B else 8
        inner, outer = depth * mode.span, depth * mode.span * -(-rows // per)
        lbo, sbo = (outer, inner) if mode is Swizzle.NONE else (inner, outer)
    d = desc(mode, lbo, sbo, start=4096)
    check_operand(d, esz * 8, major)
    at = element_addresses(d, rows, ks, esz, major)
    assert np.unique(at).size == at.size and not (at % esz).any()
    chunks = chunk_addresses(d, rows, ks, esz, major)
    assert chunks.size * 16 == at.size * esz
    if not (major == K_MAJOR and mode.span > 32):  # then the tile is only a slice of the swizzle rows
        assert chunks[0] == 4096 and chunks[-1] == 4096 + at.size * esz - 16


def test_advancing_along_k():
    wide = element_addresses(desc(Swizzle.B128, 0, 1024), 64, 64, 2)
    tall = element_addresses(desc(Swizzle.B128, 8192, 1024), 128, 64, 2, MN_MAJOR)
    for j in range(4):
        step = desc(Swizzle.B128, 0, 1024).advanced(32 * j)
        assert np.array_equal(element_addresses(step, 64, 16, 2), wide[:, 16 * j : 16 * j + 16])
        step = desc(Swizzle.B128, 8192, 1024).advanced(2048 * j)
        assert np.array_equal(element_addresses(step, 128, 16, 2, MN_MAJOR), tall[:, 16 * j : 16 * j + 16])


def test_row_subtiles():
    whole = element_addresses(desc(Swizzle.B64, 0, 512), 64, 16, 2)
    assert np.array_equal(element_addresses(desc(Swizzle.B64, 0, 512, start=3 * 512), 40, 16, 2), whole[24:])


def test_legality_of_majorness():
    wgmma = desc(Swizzle.B128, arch="sm_90")
    check_operand(wgmma, 16, MN_MAJOR)
    for bits in (8, 32):
        check_operand(wgmma, bits, K_MAJOR)
        with pytest.raises(DescriptorError, match="only for 16-bit"):
            check_operand(wgmma, bits, MN_MAJOR)
    with pytest.raises(DescriptorError, match="needs the 128B swizzle with 32B atom"):
        check_operand(desc(Swizzle.B128), 32, MN_MAJOR)
    for bits in (8, 16):
        check_operand(desc(Swizzle.B128), bits, MN_MAJOR)
        with pytest.raises(DescriptorError, match="cannot use"):
            check_operand(desc(Swizzle.B128_ATOM_32B), bits, MN_MAJOR)
    with pytest.raises(DescriptorError, match="packed 4-bit"):
        check_operand(desc(Swizzle.B128), 8, MN_MAJOR, packed=True)
    with pytest.raises(DescriptorError, match="absolute LBO"):
        check_operand(MatrixDescriptor("sm_100", 0, 0, 0, Swizzle.B64, lbo_absolute=True), 8, K_MAJOR)


def test_what_is_not_established_is_refused():
    with pytest.raises(DescriptorError, match="base offset 3"):
        element_addresses(MatrixDescriptor("sm_100", 0, 0, 1024, Swizzle.B128, 3), 8, 16, 2)
    # Without a swizzle there is no pattern to shift.
    element_addresses(MatrixDescriptor("sm_90", 0, 128, 256, Swizzle.NONE, 3), 8, 16, 2)
    with pytest.raises(DescriptorError, match="sm_103a"):
        element_addresses(MatrixDescriptor("sm_100", 0, 0, 0, Swizzle.B128, 0, True), 8, 16, 2)
    with pytest.raises(DescriptorError, match="64 bytes of K exceed the 32B"):
        element_addresses(desc(Swizzle.B32), 8, 32, 2)


@pytest.mark.parametrize("major", [K_MAJOR, MN_MAJOR])
def test_read_16_bit(major):
    rng = np.random.default_rng(1)
    d = desc(Swizzle.B128, 8192, 1024, start=2048)
    values = rng.integers(0, 1 << 16, (64, 16), np.uint16)
    memory = np.zeros(32768, np.uint8)
    memory.view(np.uint16)[element_addresses(d, 64, 16, 2, major) // 2] = values
    assert np.array_equal(read_operand(memory, d, 64, 16, 16, major), values)
    with pytest.raises(DescriptorError, match="past the"):
        read_operand(memory[:3072], d, 64, 16, 16, major)


def test_read_packed_4_bit():
    d = desc(Swizzle.NONE, 128, 256)
    memory = np.zeros(4096, np.uint8)
    memory[element_addresses(d, 16, 32, 1)] = np.arange(512).reshape(16, 32).astype(np.uint8)
    codes = read_operand(memory, d, 16, 64, 4)
    assert codes[3, :4].tolist() == [0x0, 0x6, 0x1, 0x6]  # row 3 starts with the bytes 0x60, 0x61


@pytest.mark.parametrize("bits", [4, 6])
def test_unpack_padded(bits):
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (5, 16))
    whole = [sum(int(c) << bits * i for i, c in enumerate(row)) for row in codes]
    chunks = np.array([list(w.to_bytes(16, "little")) for w in whole], np.uint8)
    assert np.array_equal(unpack_padded(chunks, bits), codes)


@pytest.mark.parametrize("major", [K_MAJOR, MN_MAJOR])
@pytest.mark.parametrize("bits", [4, 6])
def test_read_padded(bits, major):
    d = desc(Swizzle.B128, 1024, 1024)
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (32, 32), np.uint8)
    memory = np.zeros(8192, np.uint8)
    at = element_addresses(d, 32, 32, 1, major)
    for r, k in np.ndindex(32, 2) if major == K_MAJOR else np.ndindex(2, 32):
        group = codes[r, 16 * k : 16 * k + 16] if major == K_MAJOR else codes[16 * r : 16 * r + 16, k]
        start = at[r, 16 * k] if major == K_MAJOR else at[16 * r, k]
        whole = sum(int(c) << bits * i for i, c in enumerate(group))
        memory[start : start + 16] = list(whole.to_bytes(16, "little"))
    assert np.array_equal(read_operand(memory, d, 32, 32, bits, major, padded=True), codes)


@pytest.mark.parametrize("mode", [Swizzle.B128, Swizzle.B64, Swizzle.B32])
def test_a_base_offset_takes_the_phase_of_the_start_away(mode):
    # PTX ISA, "Matrix descriptor": base offset = (pattern start >> 7) & 7.
    # wgmma then sees an aligned pattern.
    aligned = element_addresses(MatrixDescriptor("sm_90", 1024, 0, 8 * mode.span, mode), 64, 16, 2)
    for rows in range(8):
        moved = MatrixDescriptor("sm_90", 1024 + 128 * rows, 0, 8 * mode.span, mode, rows)
        assert np.array_equal(element_addresses(moved, 64, 16, 2), aligned + 128 * rows)
