"""Tensor-core arithmetic: against a slow model in exact fractions, written from the rules alone."""

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgen.emulator.mma import Scales, mma
from kgen.errors import EmulatorError

from .slow_mma import LAYOUT, align_and_add, power, slow_mma, slow_mma_sync_fp8, split, to_f32


def same(got, want):
    assert got.dtype == want.dtype
    bad = np.argwhere(got != want)
    assert not len(bad), [(tuple(i), hex(got[tuple(i)]), hex(want[tuple(i)])) for i in bad[:5]]


CASES = [
    ("wgmma", "f16", "f16", 16), ("wgmma", "bf16", "bf16", 16), ("wgmma", "tf32", "tf32", 8),
    ("wgmma", "e4m3", "e4m3", 32), ("wgmma", "e5m2", "e4m3", 32), ("tcgen05", "e4m3", "e5m2", 32),
    ("tcgen05", "f16", "bf16", 16), ("tcgen05", "e2m1", "e3m2", 32), ("tcgen05", "e2m3", "e4m3", 32),
    ("mma.sync", "bf16", "bf16", 16), ("mma.sync", "e4m3", "e4m3", 32),
]  # fmt: skip
ids = [f"{u}-{x}-{y}" for u, x, y, _ in CASES]


def model_of(unit, fa):
    return (13, 13) if unit == "wgmma" and fa in ("e4m3", "e5m2") else (25, 23)


def slow(unit, a, b, c, fa, fb, d):
    if unit == "mma.sync" and fa in ("e4m3", "e5m2"):
        return slow_mma_sync_fp8(a, b, c, fa, fb, d)
    return slow_mma(a, b, c, fa, fb, d, *model_of(unit, fa))


def any_codes(rng, name, shape):
    bits, skip = LAYOUT[name][0], LAYOUT[name][5]
    low = rng.integers(0, 1 << skip, shape) if skip else 0
    dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32}[max(8, bits + skip)]
    return ((rng.integers(0, 1 << bits, shape) << skip) | low).astype(dtype)


def moderate_codes(rng, name, shape, spread=6):
    """Finite codes with exponents near 1, so that terms really overlap; some zeros and subnormals."""
    bits, ebits, fbits, bias, _, skip = LAYOUT[name]
    top = (1 << ebits) - 2
    field = np.clip(bias + rng.integers(-spread, spread + 1, shape), 0, top)
    field = np.where(rng.random(shape) < 0.1, 0, field)
    code = rng.integers(0, 2, shape) << (bits - 1) | field << fbits | rng.integers(0, 1 << fbits, shape)
    code = np.where(rng.random(shape) < 0.05, 0, code) << skip
    return code.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[max(8, bits + skip)])


def tiny_codes(rng, name, shape):
    """Codes whose products lie at the bottom of the f32 range, and zeros for accumulators."""
    bits, _, fbits, bias, _, skip = LAYOUT[name]
    field = np.maximum(bias - 75 + rng.integers(-3, 9, shape), 0)
    code = field << fbits | rng.integers(0, 1 << fbits, shape) | rng.integers(0, 2, shape) << (bits - 1)
    code = (code if name not in ("f32", "f16") else 0 * code) << skip
    return code.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[max(8, bits + skip)])


@pytest.mark.parametrize(("unit", "fa", "fb", "k"), CASES, ids=ids)
@pytest.mark.parametrize("d", ["f32", "f16"])
@pytest.mark.parametrize("codes", [any_codes, moderate_codes, tiny_codes])
def test_exact_agrees_with_fractions(unit, fa, fb, k, d, codes):
    rng = np.random.default_rng(list(f"{unit}{fa}{fb}{d}".encode()))
    a, b, c = codes(rng, fa, (12, k)), codes(rng, fb, (10, k)), codes(rng, d, (12, 10))
    c[0] = 0
    same(mma(a, b, c, fa, fb, d, unit=unit), slow(unit, a, b, c, fa, fb, d))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_exact_agrees_with_fractions_on_adversarial_exponents(data):
    unit, fa, fb, k = data.draw(st.sampled_from(CASES))
    d = data.draw(st.sampled_from(["f32", "f16"]))

    def codes(name, n):
        bits, ebits, fbits, _, _, skip = LAYOUT[name]
        top = 1 << (ebits + fbits)
        interesting = [0, 1, (1 << fbits) - 1, 1 << fbits, top - 1, top - 2]
        one = st.one_of(
            st.sampled_from([v | s << (bits - 1) for v in interesting for s in (0, 1)]),
            st.integers(0, (1 << bits) - 1),
        )
        drawn = data.draw(st.lists(one, min_size=1, max_size=4))
        values = np.resize(np.array(drawn, np.uint64) << skip, n)
        return values.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[max(8, bits + skip)])

    a, b, c = codes(fa, k)[None], codes(fb, k)[None], codes(d, 1)[None]
    same(mma(a, b, c, fa, fb, d, unit=unit), slow(unit, a, b, c, fa, fb, d))


def f32(x):
    return np.asarray(x, np.float32).view(np.uint32)


def ints(rng, name, shape):
    from kgen.emulator.formats import FORMATS, encode

    values = rng.integers(-4, 5, shape)
    return values, encode(values.astype(float), FORMATS[name])


@pytest.mark.parametrize(("unit", "fa", "fb", "k"), CASES, ids=ids)
def test_small_integers_are_exact_and_fast_agrees(unit, fa, fb, k):
    rng = np.random.default_rng(3)
    (va, a), (vb, b) = ints(rng, fa, (64, k)), ints(rng, fb, (48, k))
    vc = rng.integers(-9, 10, (64, 48))
    for kind in ("exact", "fast"):
        got = mma(a, b, f32(vc), fa, fb, "f32", unit=unit, arithmetic=kind)
        assert np.array_equal(got.view(np.float32), va @ vb.T + vc)
        assert np.array_equal(mma(a, b, None, fa, fb, "f32", unit=unit, arithmetic=kind), f32(va @ vb.T))


def one_dot(products, c, unit="wgmma", fa="f16", d="f32"):
    """D of a single element whose products are the given f16 pairs."""
    k = 16
    a, b = np.zeros((1, k), np.float16), np.zeros((1, k), np.float16)
    for i, (x, y) in enumerate(products):
        a[0, i], b[0, i] = x, y
    out = mma(a.view(np.uint16), b.view(np.uint16), f32([[c]]), "f16", "f16", d, unit=unit)
    return float(out.view(np.float32)[0, 0])


def test_crafted_truncation_f25():
    # c = 1 sets E = 0; terms below 2^-25 vanish one by one, although together they would count.
    tiny = 2.0**-13
    assert one_dot([(tiny, tiny / 2)] * 4, 0.0) == 4 * 2.0**-27
    assert one_dot([(tiny, tiny / 2)] * 16, 1.0) == 1.0
    assert one_dot([(tiny, tiny)] * 8, 1.0) == 1.0 + 8 * 0.0  # 2^-26 each: all truncated
    assert one_dot([(tiny * 2, tiny)] * 8, 1.0) == 1.0 + 2.0**-22  # 2^-25 each: kept
    # Toward zero on both sides.
    assert one_dot([(2.0**-12, 2.0**-12)], 1.0) == 1.0
    assert one_dot([(-(2.0**-12), 2.0**-12)], -1.0) == -1.0
    assert one_dot([(-(2.0**-12), 2.0**-12)], 1.0) == 1.0 - 2.0**-24


def test_products_are_not_renormalised_before_alignment():
    # 1.5 * 1.5 = 2.25 keeps exponent 0, so a term of 2^-25 survives beside it; 2 * 1.125 has exponent 1.
    assert one_dot([(1.5, 1.5), (-1.5, 1.5), (2.0**-12, 2.0**-13)], 0.0) == 2.0**-25
    assert one_dot([(2.0, 1.125), (-2.0, 1.125), (2.0**-12, 2.0**-13)], 0.0) == 0.0


def test_terms_below_the_exponent_floor():
    # Measured on Hopper: nothing aligns below 2^-133, so each product is cut at 2^-158. 255 * 2^-157 lacks
    # 2^-157 of the smallest subnormal: two products of 2^-158 give it, four of 2^-159 are each cut away.
    a, b = np.zeros((1, 16), np.uint16), np.zeros((1, 16), np.uint16)
    a[0, 0], b[0, 0] = (127 - 75) << 7 | 0x7F, (127 - 75) << 7  # 255 * 2^-7 * 2^-150
    assert int(mma(a, b, None, "bf16", "bf16", "f32")[0, 0]) == 0
    a[0, 1:3], b[0, 1:3] = (127 - 79) << 7, (127 - 79) << 7
    assert int(mma(a, b, None, "bf16", "bf16", "f32")[0, 0]) == 1
    a[0, 1:5], b[0, 1:5] = (127 - 80) << 7, (127 - 79) << 7
    assert int(mma(a, b, None, "bf16", "bf16", "f32")[0, 0]) == 0


def test_fp8_mma_sync_adds_c_last_and_to_nearest():
    # c = 2^24 with products 1, 1, 1: a fused sum makes 2^24 + 2; adding 3 to nearest gives 2^24 + 4.
    a, b = np.zeros((1, 32), np.uint8), np.zeros((1, 32), np.uint8)
    a[0, :3], b[0, :3] = 0x38, 0x38
    c = f32([[2.0**24]])
    assert float(mma(a, b, c, "e4m3", "e4m3", "f32", unit="mma.sync").view(np.float32)[0, 0]) == 2.0**24 + 4
    assert float(mma(a, b, c, "e4m3", "e4m3", "f32", unit="tcgen05").view(np.float32)[0, 0]) == 2.0**24 + 2


def test_crafted_truncation_f35():
    # c = 1 and a group of -1 cancel; what is left of the second group is its part above 2^-35.
    a, b = np.zeros((1, 64), np.uint8), np.zeros((1, 64), np.uint8)
    a[0, 0], b[0, 0], a[0, 16], b[0, 16] = 0x2, 0xA, 0x2, 0x2  # 1 * -1 and 1 * 1
    for exponent, left in ((-35, 2.0**-35), (-36, 0.0)):
        ones = np.full((1, 4), 127, np.uint8)
        scales = Scales(np.uint8([[127, 127 + exponent, 127, 127]]), ones, "ue8m0", 16)
        got = mma(a, b, f32([[1.0]]), "e2m1", "e2m1", "f32", unit="tcgen05", scales=scales, packed=True)
        assert float(got.view(np.float32)[0, 0]) == left


def test_hopper_fp8_keeps_13_bits():
    # 0x38 is 1.0 in e4m3; 2^-9 is its smallest subnormal.
    a, b = np.zeros((1, 32), np.uint8), np.zeros((1, 32), np.uint8)
    a[0, :2], b[0, :2] = (0x38, 0x01), (0x38, 0x08)  # 1 + 2^-9 * 2^-6 = 1 + 2^-15
    c = f32([[0.0]])
    args = (a, b, c, "e4m3", "e4m3", "f32")
    assert float(mma(*args, unit="wgmma").view(np.float32)[0, 0]) == 1.0
    assert float(mma(*args, unit="tcgen05").view(np.float32)[0, 0]) == 1.0 + 2.0**-15
    # c itself is cut to 13 fraction bits.
    got = mma(a, b * 0, f32([[1.0 + 2.0**-13 + 2.0**-14]]), "e4m3", "e4m3", "f32", unit="wgmma")
    assert float(got.view(np.float32)[0, 0]) == 1.0 + 2.0**-13


def test_specials():
    big = 65504.0
    inf = float("inf")
    assert one_dot([(inf, 1.0)], 0.0) == inf and one_dot([(inf, -1.0)], 5.0) == -inf
    for products, c in (([(inf, 0.0)], 0.0), ([(inf, 1.0)], -inf), ([(float("nan"), 0.0)], 0.0)):
        assert np.isnan(one_dot(products, c))
    assert one_dot([(big, big)] * 16, 3.4e38) == float(np.float32(3.4e38))  # 2^35 is below half an ulp
    a = np.full((1, 16), 0x7F7F, np.uint16)  # largest bf16
    assert int(mma(a, a, None, "bf16", "bf16", "f32")[0, 0]) == 0x7F800000
    assert int(mma(a, a, None, "bf16", "bf16", "f32", negate_b=True)[0, 0]) == 0xFF800000
    top = np.uint32([[0x7F7FFFFF]])
    one = np.full((1, 16), 0x7180, np.uint16)  # 2^100
    assert int(mma(one, one[:, ::-1] * 0, top, "bf16", "bf16", "f32")[0, 0]) == 0x7F7FFFFF


def test_zeros():
    zero, minus = np.zeros((1, 16), np.uint16), np.full((1, 16), 0x8000, np.uint16)
    assert int(mma(minus, zero, np.uint32([[0x80000000]]), "f16", "f16", "f32")[0, 0]) == 0
    assert int(mma(zero, zero, np.uint16([[0x8000]]), "f16", "f16", "f16")[0, 0]) == 0
    # A negative sum that underflows is +0 too (measured on Hopper).
    small, minus_small = zero.copy(), zero.copy()
    small[0, 0], minus_small[0, 0] = 0x0001, 0x8001
    assert int(mma(minus_small, small, None, "f16", "f16", "f16")[0, 0]) == 0
    small[0, 0], minus_small[0, 0] = (127 - 80) << 7, 0x8000 | (127 - 75) << 7
    assert int(mma(minus_small, small, None, "bf16", "bf16", "f32")[0, 0]) == 0


def test_negation_and_c_scaling():
    rng = np.random.default_rng(5)
    (va, a), (vb, b) = ints(rng, "bf16", (8, 16)), ints(rng, "bf16", (8, 16))
    c = np.arange(64.0).reshape(8, 8)
    for na, nb in ((True, False), (False, True), (True, True)):
        sign = -1 if na != nb else 1
        got = mma(a, b, f32(c), "bf16", "bf16", "f32", unit="tcgen05", negate_a=na, negate_b=nb, scale_c=3)
        assert np.array_equal(got.view(np.float32), sign * (va @ vb.T) + c / 8)


def scale_codes(rng, fmt, shape):
    low, high = (121, 134) if fmt == "ue8m0" else (1, 127)
    return rng.integers(low, high, shape, np.uint8)


@pytest.mark.parametrize("fa", ["e4m3", "e2m1", "e3m2"])
def test_mxf8_agrees_with_fractions(fa):
    rng = np.random.default_rng(9)
    a, b = moderate_codes(rng, fa, (6, 32)), moderate_codes(rng, "e5m2", (5, 32))
    c = moderate_codes(rng, "f32", (6, 5))
    s = Scales(scale_codes(rng, "ue8m0", (6, 1)), scale_codes(rng, "ue8m0", (5, 1)), "ue8m0", 32)
    s.a[0, 0], s.b[0, 0] = 0, 0  # 2^-127: products far below the f32 range
    shift = lambda m, n, k: int(s.a[m, 0]) - 127 + int(s.b[n, 0]) - 127  # noqa: E731
    want = slow_mma(a, b, c, fa, "e5m2", "f32", 25, shift=shift)
    same(mma(a, b, c, fa, "e5m2", "f32", unit="tcgen05", scales=s), want)


def slow_packed(a, b, c, scales, d_shape):
    """mxf4 / nvf4: sums of 16 products are exact; a term's exponent is that of its scales."""
    def scale_parts(code):
        if scales.format == "ue8m0":
            return Fraction(1), int(code) - 127
        field, fraction = int(code) >> 3 & 15, int(code) & 7
        return (Fraction(8 + fraction, 8), field - 7) if field else (Fraction(fraction, 8), -6)

    out = np.zeros(d_shape, np.uint32)
    for m, n in np.ndindex(d_shape):
        terms = [split(c[m, n], "f32")]
        for g in range(0, a.shape[1], 16):
            pairs = [(split(a[m, k], "e2m1"), split(b[n, k], "e2m1")) for k in range(g, g + 16)]
            exact = sum(x[0] * power(x[1]) * y[0] * power(y[1]) for x, y in pairs)
            (sa, ea), (sb, eb) = (scale_parts(s[g // scales.block]) for s in (scales.a[m], scales.b[n]))
            terms.append((exact * sa * sb, ea + eb))
        out[m, n] = to_f32(align_and_add(terms, 35), 23)
    return out


@pytest.mark.parametrize(("fmt", "block"), [("ue8m0", 32), ("ue4m3", 16), ("ue8m0", 16)])
def test_packed_4_bit_agrees_with_fractions(fmt, block):
    rng = np.random.default_rng(block)
    a, b = rng.integers(0, 16, (9, 64), np.uint8), rng.integers(0, 16, (7, 64), np.uint8)
    c = moderate_codes(rng, "f32", (9, 7))
    s = Scales(scale_codes(rng, fmt, (9, 64 // block)), scale_codes(rng, fmt, (7, 64 // block)), fmt, block)
    a[0] = 0
    want = slow_packed(a, b, c, s, (9, 7))
    same(mma(a, b, c, "e2m1", "e2m1", "f32", unit="tcgen05", scales=s, packed=True), want)
    # The sign bit of ue4m3 does nothing.
    if fmt == "ue4m3":
        flipped = Scales(s.a | 0x80, s.b, fmt, block)
        same(mma(a, b, c, "e2m1", "e2m1", "f32", unit="tcgen05", scales=flipped, packed=True), want)


def test_a_nan_scale_poisons_its_row():
    a = np.full((2, 32), 0x38, np.uint8)
    s = Scales(np.uint8([[0xFF], [127]]), np.uint8([[127], [127]]), "ue8m0", 32)
    got = mma(a, a, None, "e4m3", "e4m3", "f32", unit="tcgen05", scales=s)
    assert got.tolist() == [[0x7FFFFFFF] * 2, [int(f32(32.0))] * 2]
    four = np.full((2, 64), 2, np.uint8)
    s = Scales(np.uint8([[127, 0xFF], [127, 127]]), np.full((2, 2), 127, np.uint8), "ue8m0", 32)
    got = mma(four, four, None, "e2m1", "e2m1", "f32", unit="tcgen05", scales=s, packed=True)
    assert got.tolist() == [[0x7FFFFFFF] * 2, [int(f32(64.0))] * 2]


@pytest.mark.parametrize("fmt", ["ue8m0", "ue4m3"])
def test_fast_block_scaling(fmt):
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 16, (8, 64), np.uint8), rng.integers(0, 16, (8, 64), np.uint8)
    s = Scales(scale_codes(rng, fmt, (8, 4)), scale_codes(rng, fmt, (8, 4)), fmt, 16)
    args = (a, b, None, "e2m1", "e2m1", "f32")
    fast = mma(*args, unit="tcgen05", scales=s, packed=True, arithmetic="fast").view(np.float32)
    exact = mma(*args, unit="tcgen05", scales=s, packed=True).view(np.float32)
    assert np.allclose(fast, exact, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(("fa", "fb"), [("s8", "s8"), ("u8", "s8"), ("u8", "u8"), ("b1", "b1")])
def test_integers(fa, fb):
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 2 if fa == "b1" else 256, (16, 32), np.uint8) for _ in range(2))
    c = rng.integers(-(1 << 31), 1 << 31, (16, 16)).astype(np.int32)
    c[0, 0], a[0], b[0] = (1 << 31) - 1, 1, 1

    def value(x, f):
        return x.view(np.int8).astype(int) if f == "s8" else x.astype(int)

    exact = value(a, fa) @ value(b, fb).T + c
    got = mma(a, b, c, fa, fb, "s32")
    assert np.array_equal(got.view(np.int32), exact.astype(np.int32))
    clamped = mma(a, b, c, fa, fb, "s32", saturate=True).view(np.int32)
    assert np.array_equal(clamped, np.clip(exact, -(1 << 31), (1 << 31) - 1))
    assert clamped[0, 0] == (1 << 31) - 1


def test_chained_steps_round_every_time():
    rng = np.random.default_rng(6)
    a, b = moderate_codes(rng, "bf16", (4, 64)), moderate_codes(rng, "bf16", (4, 64))
    got = want = np.zeros((4, 4), np.uint32)
    for k in range(0, 64, 16):
        got = mma(a[:, k : k + 16], b[:, k : k + 16], got, "bf16", "bf16", "f32")
        want = slow_mma(a[:, k : k + 16], b[:, k : k + 16], want, "bf16", "bf16", "f32", 25)
    same(got, want)


def test_misfits_are_refused():
    a = np.zeros((8, 16), np.uint16)
    for args, kw in (
        ((a, a[:, :8], None, "f16", "f16", "f32"), {}),
        ((a, a, np.zeros((8, 4), np.uint32), "f16", "f16", "f32"), {}),
        ((a, a, None, "f16", "f16", "s32"), {}),
        ((a, a, None, "s8", "f16", "s32"), {}),
        ((a, a, None, "b1", "s8", "s32"), {}),
        ((a, a, None, "f15", "f16", "f32"), {}),
        ((a, a, None, "f16", "f16", "f32"), {"unit": "hmma"}),
        ((a, a, None, "f16", "f16", "f32"), {"arithmetic": "sloppy"}),
        ((a, a, None, "e2m1", "e2m1", "f32"), {"packed": True}),
    ):
        with pytest.raises(EmulatorError, match=r"mma|arithmetic"):
            mma(*args, **kw)


def test_speed():
    rng = np.random.default_rng(0)
    a, b = moderate_codes(rng, "bf16", (64, 16)), moderate_codes(rng, "bf16", (256, 16))
    c = moderate_codes(rng, "f32", (64, 256))
    mma(a, b, c, "bf16", "bf16", "f32")
    best = min(_timed(lambda: mma(a, b, c, "bf16", "bf16", "f32")) for _ in range(5))
    assert best < 0.05


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
