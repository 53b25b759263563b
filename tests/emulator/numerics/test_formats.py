"""Number formats: against ml_dtypes (an independent implementation), limits of the PTX ISA, round trips."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgen.emulator import formats
from kgen.emulator.formats import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, TF32, UE4M3, UE8M0, decode, encode
from kgen.errors import EmulatorError

PEERS = {
    F16: np.float16, BF16: ml_dtypes.bfloat16, E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2,
    E2M3: ml_dtypes.float6_e2m3fn, E3M2: ml_dtypes.float6_e3m2fn, E2M1: ml_dtypes.float4_e2m1fn,
    UE8M0: ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
ALL = list(formats.FORMATS.values())
SIGNED = [f for f in ALL if f.signed]


def name(f):
    return f.name


@pytest.mark.parametrize("fmt", PEERS, ids=name)
def test_every_code_decodes_as_the_peer_does(fmt):
    codes = np.arange(1 << fmt.bits, dtype=fmt.dtype)
    with np.errstate(invalid="ignore"):
        peer = codes.view(PEERS[fmt]).astype(np.float64)
    assert np.array_equal(decode(codes, fmt), peer, equal_nan=True)
    assert np.array_equal(np.signbit(decode(codes, fmt))[~np.isnan(peer)], np.signbit(peer)[~np.isnan(peer)])


def test_limits():
    assert [f.max_value for f in (F16, E4M3, E5M2, E2M3, E3M2, E2M1)] == [65504, 448, 57344, 7.5, 28, 6]
    assert decode(np.arange(8), E2M1).tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert (E4M3.bias, E4M3.nan_code, UE8M0.nan_code, F16.nan_code) == (7, 0x7F, 0xFF, 0x7FFF)
    assert decode([0, 127, 254], UE8M0).tolist() == [2.0**-127, 1.0, 2.0**127]
    assert np.isnan(decode(0xFF, UE8M0))
    # The sign bit of ue4m3 is ignored.
    assert decode([0x38, 0xB8], UE4M3).tolist() == [1.0, 1.0]


def test_tf32_is_a_float32_without_its_low_bits():
    words = np.array([0x3F800000, 0x3F801FFF, 0x3F802000, 0x00001FFF, 0x7F801FFF], np.uint32)
    assert decode(words, TF32).tolist() == [1.0, 1.0, 1.0 + 2.0**-10, 0.0, np.inf]


@pytest.mark.parametrize("fmt", ALL, ids=name)
def test_encode_inverts_decode(fmt):
    codes = np.arange(1 << fmt.bits) if fmt is not UE4M3 else np.arange(128)
    values = decode(codes << fmt.shift, fmt)
    keep = ~np.isnan(values)
    back = encode(values, fmt, "rp" if fmt is UE8M0 else "rn")
    assert back.dtype == fmt.dtype
    assert np.array_equal(back[keep], (codes << fmt.shift)[keep])
    assert (back[~keep] == fmt.nan_code).all() if not keep.all() else True


def probes(fmt, count=4000):
    """Values around every interesting boundary: all codes, midpoints, neighbours, huge and tiny."""
    codes = np.arange(1 << fmt.bits)
    if fmt.bits > 8:
        codes = np.random.default_rng(0).choice(codes, count)
    v = decode(codes << fmt.shift, fmt)
    v = np.unique(v[np.isfinite(v)])
    mid = (v[1:] + v[:-1]) / 2
    top = fmt.max_value
    extra = [0.0, -0.0, 1e-30, -1e-30, top * (1 + 2.0 ** -(fmt.mantissa + 2)), top * 1.0625, top * 2]
    out = np.concatenate([v, mid, np.nextafter(mid, np.inf), np.nextafter(mid, -np.inf), extra])
    return np.concatenate([out, -out])


@pytest.mark.parametrize("fmt", [f for f in PEERS if f.signed], ids=name)
def test_round_to_nearest_agrees_with_the_peer(fmt):
    values = probes(fmt)
    # Through f32: some peers convert float64 by way of it.
    values = values[np.abs(values) < 3e38].astype(np.float32)
    values = values[np.abs(values) <= fmt.max_value]  # beyond it the peers have their own rules
    peer = values.astype(PEERS[fmt]).view(fmt.dtype)
    assert np.array_equal(encode(values, fmt), peer)


def slow_encode(x, fmt, rounding):
    """Search the finite codes for the right neighbour with exact fractions; positive x within range."""
    finite = [(Fraction(float(v)), c) for c, v in enumerate(fmt.table[: fmt.max_code + 1])]
    below = max(p for p in finite if p[0] <= x)
    above = min((p for p in finite if p[0] >= x), default=below)
    if rounding == "rz" or below == above:
        return below[1]
    low, high = x - below[0], above[0] - x
    if low == high:
        return above[1] if rounding == "rna" or below[1] % 2 else below[1]
    return below[1] if low < high else above[1]


@pytest.mark.parametrize("fmt", [E4M3, E5M2, E2M3, E3M2, E2M1, UE4M3], ids=name)
@pytest.mark.parametrize("rounding", ["rn", "rz", "rna"])
def test_roundings_agree_with_fractions(fmt, rounding):
    values = probes(fmt)
    values = values[~np.signbit(values) & (values <= fmt.max_value)]
    expected = [slow_encode(Fraction(float(v)), fmt, rounding) for v in values]
    assert encode(values, fmt, rounding).tolist() == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([F16, BF16, TF32]))
def test_toward_zero_never_grows_and_is_the_nearest_below(x, fmt):
    code = encode(x, fmt, "rz")
    value = float(decode(code, fmt))
    assert abs(value) <= abs(x) and np.signbit(value) == np.signbit(x)
    magnitude = (int(code) >> fmt.shift) & ((1 << (fmt.bits - 1)) - 1)
    if magnitude < fmt.max_code:
        assert float(fmt.table[magnitude + 1]) > abs(x)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_tf32_by_word_arithmetic(x):
    word = int(np.float32(x).view(np.uint32))
    assert int(encode(x, TF32, "rz")) == word & 0xFFFFE000
    assert int(encode(x, TF32, "rna")) == (word + 0x1000) & 0xFFFFE000
    assert int(encode(x, TF32, "rn")) == (word + 0xFFF + (word >> 13 & 1)) & 0xFFFFE000


@pytest.mark.parametrize(
    ("fmt", "nan", "inf", "over", "sat_nan", "sat_inf"),
    [
        (F16, 0x7FFF, 0x7C00, 0x7C00, 0x7FFF, 0x7BFF),
        (BF16, 0x7FFF, 0x7F80, 0x7F80, 0x7FFF, 0x7F7F),
        (TF32, 0x7FFFE000, 0x7F800000, 0x7F800000, 0x7FFFE000, 0x7F7FE000),
        (E4M3, 0x7F, 0x7F, 0x7F, 0x7F, 0x7E),
        (E5M2, 0x7F, 0x7C, 0x7C, 0x7F, 0x7B),
        (E2M3, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F),
        (E3M2, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F),
        (E2M1, 0x07, 0x07, 0x07, 0x07, 0x07),
    ],
    ids=lambda v: v.name if hasattr(v, "name") else "",
)
def test_nan_infinity_and_overflow(fmt, nan, inf, over, sat_nan, sat_inf):
    huge = fmt.max_value * 1.5
    assert encode([np.nan, np.inf, huge], fmt).tolist() == [nan, inf, over]
    assert encode([np.nan, np.inf, huge], fmt, satfinite=True).tolist() == [sat_nan, sat_inf, sat_inf]
    sign = 1 << (fmt.bits - 1 + fmt.shift)
    assert encode([-np.nan, -np.inf], fmt, satfinite=True).tolist() == [sat_nan, sat_inf | sign]
    # Toward zero a finite value never becomes infinite, an infinity stays one.
    assert encode([huge, -huge], fmt, "rz").tolist() == [sat_inf, sat_inf | sign]
    assert int(encode(np.inf, fmt, "rz")) == inf
    assert encode([-1.0, -0.0, -np.inf, np.nan, 1.0], fmt, relu=True, satfinite=True).tolist() == [
        0, 0, 0, sat_nan, int(encode(1.0, fmt))]  # fmt: skip


def test_ue8m0():
    x = [0.0, 2.0**-149, 2.0**-127, 1.5 * 2.0**-127, 1.0, 1.0000001, 3.0, -3.0, 2.0**127, 1.1 * 2.0**127]
    assert encode(x, UE8M0, "rz").tolist() == [0, 0, 0, 0, 127, 127, 128, 128, 254, 254]
    assert encode(x, UE8M0, "rp").tolist() == [0, 0, 0, 1, 127, 128, 129, 129, 254, 255]
    assert encode([np.inf, 1.1 * 2.0**127, np.nan], UE8M0, "rp", satfinite=True).tolist() == [254, 254, 255]
    with pytest.raises(EmulatorError, match="rz and rp"):
        encode(1.0, UE8M0)


@pytest.mark.parametrize("fmt", [f for f in SIGNED if f is not TF32], ids=name)
def test_pairs(fmt):
    a, b = encode([1.0, -2.0], fmt)
    packed = formats.pack_pair(a, b, fmt)
    assert [int(v) for v in formats.unpack_pair(packed, fmt)] == [int(a), int(b)]


def test_pair_order_is_first_operand_on_top():
    assert formats.pack_pair(0x3C00, 0xC000, F16) == 0x3C00C000
    assert formats.pack_pair(0x2, 0xC, E2M1) == 0x2C
    assert formats.pack_pair(0x08, 0x30, E2M3) == 0x0830
