"""cvt and directed f64 arithmetic against exact rationals, and the documented ends and NaNs."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from kgen.emulator import formats
from kgen.emulator.launch import launch

HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"
REGISTERS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


def convert(text, *sources, out):
    """The lanes' results of one instruction: %d from %s0, %s1 ..., registers as wide as the arrays' elements."""
    n = len(sources[0])
    result = np.zeros(n, out)
    wide = result.dtype.itemsize
    params = ", ".join(f".param .u64 p{i}" for i in range(len(sources) + 1))
    lines = []
    for i, s in enumerate(sources):
        size = s.dtype.itemsize
        lines.append(f".reg .{REGISTERS[size]} %s{i}; ld.param.u64 %a, [p{i}];")
        lines.append(f"mad.wide.u32 %a, %i, {size}, %a; ld.global.{REGISTERS[size]} %s{i}, [%a];")
    text = f"""{HEADER}.visible .entry k({params}) {{ .reg .b64 %a; .reg .b32 %i; .reg .{REGISTERS[wide]} %d;
      mov.u32 %i, %tid.x; {" ".join(lines)} {text}
      ld.param.u64 %a, [p{len(sources)}];
      mad.wide.u32 %a, %i, {wide}, %a; st.global.{REGISTERS[wide]} [%a], %d; ret; }}"""
    launch(text, "k", 1, n, [*map(np.ascontiguousarray, sources), result])
    return result


EDGES = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**63, 2.0**64, -(2.0**63), 3.5, -3.5, 0.0, -1.0], np.float32)


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", "us")
def test_out_of_range_goes_to_the_ends(sign, bits):
    kind = f"{'i' if sign == 's' else 'u'}{bits // 8}"
    got = convert(f"cvt.rzi.{sign}{bits}.f32 %d, %s0;", EDGES, out=kind)
    info = np.iinfo(kind)
    nan = 0 if bits < 64 else int(np.array(1 << 63, "u8").view(kind))
    wanted = [nan if math.isnan(v) else v for v in EDGES.tolist()]
    wanted = [v if isinstance(v, int) else min(max(v, info.min), info.max) for v in wanted]
    assert got.tolist() == [int(v) if math.isfinite(v) and abs(v) < 2**62 else v for v in map(_whole, wanted)]


def _whole(v):
    return v if isinstance(v, int) else int(v)


def directed(exact: Fraction, kind, mode):
    """The neighbour of `exact` that `mode` asks for, by looking at candidates of the type."""
    near = kind(float(exact))
    candidates = [near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    if mode == "rz":
        mode = "rm" if exact >= 0 else "rp"
    if mode == "rm":
        return max((c for c in finite if Fraction(float(c)) <= exact), default=kind(-np.inf))
    return min((c for c in finite if Fraction(float(c)) >= exact), default=kind(np.inf))


RNG = np.random.default_rng(5)
LONG = np.concatenate([RNG.integers(-(2**63), 2**63 - 1, 28), [2**63 - 1, -(2**63), 2**53 + 1, 1]]).astype(np.int64)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize(("out", "kind"), [("f32", np.float32), ("f64", np.float64)])
@pytest.mark.parametrize("source", ["s64", "u64"])
def test_long_integers_are_rounded_in_the_direction_asked_for(mode, out, kind, source):
    values = LONG if source == "s64" else LONG.view(np.uint64)
    got = convert(f"cvt.{mode}.{out}.{source} %d, %s0;", values, out=kind)
    assert got.tolist() == [directed(Fraction(v), kind, mode) for v in values.tolist()]


def test_integers_to_half_types_honour_the_rounding():
    x = np.array([2049, -2049, 2051, 4097, 70000, -70000, 257, -257], np.int32)
    got = convert("cvt.rz.f16.s32 %d, %s0;", x, out=np.uint16).view(np.float16)
    assert got.tolist() == [2048, -2048, 2050, 4096, 65504, -65504, 257, -257]
    got = convert("cvt.rp.bf16.s32 %d, %s0;", x[-2:], out=np.uint16).view(ml_dtypes.bfloat16)
    assert got.astype(float).tolist() == [258, -256]
    # 2^60 + 2^52 is a tie of bf16; one more must not be lost on the way.
    x = np.array([2**60 + 2**52, 2**60 + 2**52 + 1], np.uint64)
    got = convert("cvt.rn.bf16.u64 %d, %s0;", x, out=np.uint16).view(ml_dtypes.bfloat16)
    assert got.astype(float).tolist() == [2.0**60, 2.0**60 + 2.0**53]


def test_tf32_clamps_and_has_one_nan():
    x = np.array([np.inf, -np.inf, np.nan, -np.nan, 1.0, 3.4028e38], np.float32)
    got = convert("cvt.rn.satfinite.tf32.f32 %d, %s0;", x, out=np.uint32)
    assert got.tolist() == [0x7F7FE000, 0xFF7FE000, 0x7FFFE000, 0x7FFFE000, 0x3F800000, 0x7F7FE000]
    got = convert("cvt.rna.tf32.f32 %d, %s0;", x, out=np.uint32)
    assert got[:2].tolist() == [0x7F800000, 0xFF800000]
    got = convert("cvt.rn.relu.tf32.f32 %d, %s0;", np.array([-0.0, -3, np.nan], np.float32), out=np.uint32)
    assert got.tolist() == [0, 0, 0x7FFFE000]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_relu_and_nan_of_half_results(kind):
    a = np.array([-0.0, -2, -np.nan, np.nan, -np.inf], np.float32)
    packed = convert(f"cvt.rn.relu.{kind}x2.f32 %d, %s0, %s1;", a, a, out=np.uint32)
    assert packed.tolist() == [0, 0, 0x7FFF7FFF, 0x7FFF7FFF, 0]
    single = convert(f"cvt.rn.relu.{kind}.f32 %d, %s0;", a, out=np.uint16)
    assert single.tolist() == [0, 0, 0x7FFF, 0x7FFF, 0]
    packed = convert(f"cvt.rn.{kind}x2.f32 %d, %s0, %s1;", a, -a, out=np.uint32)
    assert packed[2:4].tolist() == [0x7FFF7FFF] * 2
    bits = np.array([0xFFFF, 0x7FFE], np.uint16)
    assert convert(f"fma.rn.{kind} %d, %s0, %s0, %s0;", bits, out=np.uint16).tolist() == [0x7FFF, 0x7FFF]


DOUBLES = np.concatenate([
    RNG.standard_normal(20) * 10.0 ** RNG.integers(-150, 150, 20),
    [1e308, 1.7e308, 5e-324, 1e-200, 0.1, 1 / 3, 1.0, -1.0, 2.0**53, 1e16, -0.3, 7.0],
])  # fmt: skip
EXACT = {
    "add": lambda a, b, c: a + b, "sub": lambda a, b, c: a - b, "mul": lambda a, b, c: a * b,
    "div": lambda a, b, c: a / b, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("name", EXACT)
def test_double_arithmetic_in_every_direction(name, mode):
    a, b, c = DOUBLES, np.roll(DOUBLES, 7), np.roll(DOUBLES, 12)
    sources = "%s0, %s1, %s2" if name == "fma" else "%s0, %s1"
    got = convert(f"{name}.{mode}.f64 %d, {sources};", a, b, c, out=np.float64)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        exact = EXACT[name](Fraction(x), Fraction(y), Fraction(z))
        if abs(exact) > Fraction(1.7976931348623157e308):
            away = (mode == "rp") if exact > 0 else (mode == "rm")
            assert r == (math.inf if away else 1.7976931348623157e308) * (1 if exact > 0 else -1)
        else:
            assert r == directed(exact, np.float64, mode)


def test_zero_sums_have_the_sign_of_the_direction():
    x = np.array([1.5, 0.0, -0.0], np.float64)
    y = np.array([-1.5, -0.0, -0.0], np.float64)
    for mode, wanted in (("rm", [True, True, True]), ("rp", [False, False, True])):
        got = convert(f"add.{mode}.f64 %d, %s0, %s1;", x, y, out=np.float64)
        assert np.signbit(got).tolist() == wanted


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_fp8_from_half_pairs(name):
    halves = np.array([1.0, -2.5, 1000.0, np.nan, 0.01, -0.0], np.float16)
    packed = halves.view(np.uint16).astype(np.uint32) << 16 | halves[::-1].view(np.uint16)
    got = convert(f"cvt.rn.satfinite.{name}x2.f16x2 %d, %s0;", packed, out=np.uint16)
    fmt = formats.FORMATS[name]
    codes = formats.encode(halves.astype(np.float64), fmt, "rn", True).astype(np.uint16)
    assert got.tolist() == (codes << 8 | codes[::-1]).tolist()


def test_scale_factors_from_bf16_pairs():
    packed = np.array([0x3F804080], np.uint32)  # 1, 4
    assert convert("cvt.rp.satfinite.ue8m0x2.bf16x2 %d, %s0;", packed, out=np.uint16).tolist() == [127 << 8 | 129]


def test_cvt_pack():
    a, b = np.array([70000, -5, 300], np.int32), np.array([-70000, 7, -300], np.int32)
    got = convert("cvt.pack.sat.s16.s32 %d, %s0, %s1;", a, b, out=np.uint32)
    assert got.tolist() == [0x7FFF8000, 0xFFFB0007, 0x012CFED4]
    c = np.array([0x1234, 1, 2], np.uint32)
    got = convert("cvt.pack.sat.u8.s32.b32 %d, %s0, %s1, %s2;", a, b, c, out=np.uint32)
    assert got.tolist() == [0x1234FF00, 0x00010007, 0x0002FF00]
    got = convert("cvt.pack.sat.s4.s32.b32 %d, %s0, %s1, %s2;", a, b, c, out=np.uint32)
    assert got.tolist() == [0x123478, 0x1B7, 0x278]


def test_stochastic_rounding_adds_its_bits_below_the_last_one():
    one = 0x3F800000
    a = np.array([one | 0x1000, one | 0x1000, one | 1, one], np.uint32)
    bits = np.array([0x0FFF0FFF, 0x10001000, 0xFFFFFFFF, 0xFFFFFFFF], np.uint32)
    got = convert("cvt.rs.f16x2.f32 %d, %s0, %s0, %s1;", a, bits, out=np.uint32)
    assert got.tolist() == [0x3C003C00, 0x3C013C01, 0x3C013C01, 0x3C003C00]
    a = np.array([one | 0x8000, one | 0x8000, -1 & 0xFF7FFFFF], np.uint32)
    bits = np.array([0x7FFF8000, 0x80007FFF, 0x0000FFFF], np.uint32)
    got = convert("cvt.rs.bf16x2.f32 %d, %s0, %s0, %s1;", a, bits, out=np.uint32)
    assert got.tolist() == [0x3F803F81, 0x3F813F80, 0xFF7FFF80]
    x = np.array([1.0], np.float32)
    got = convert("cvt.rs.satfinite.e4m3x4.f32 %d, {%s0, %s1, %s0, %s1}, %s2;", x, -2 * x, bits[:1], out=np.uint32)
    assert got.tolist() == [0x38C038C0]
