"""Single instructions, as hand-written PTX, against plain Python on integers and floats."""

import struct

import numpy as np
import pytest

from kgen.emulator.launch import launch
from kgen.errors import EmulatorError

HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"
N = 64
RNG = np.random.default_rng(3)
WORDS = RNG.integers(0, 2**32, (3, N)).astype(np.uint32)
WORDS[:, :8] = [[0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 31, 32, 255]] * 3
SMALL = RNG.integers(0, 40, (3, N)).astype(np.uint32)


def run(body, inputs, width=4, registers="", block=N):
    """Runs `body`, which turns %x0..%x2 (.b32) into %y (.b32, .b64 if width is 8); the outputs."""
    out = np.zeros(block, np.uint64 if width == 8 else np.uint32)
    wide = "b64" if width == 8 else "b32"
    text = f"""{HEADER}
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 po) {{
  .reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %x<4>; .reg .b32 %t<8>; .reg .b64 %a<8>; .reg .b64 %d<8>;
  .reg .{wide} %y; .reg .b32 %i; .reg .f32 %f<8>; {registers}
  mov.u32 %i, %tid.x; mul.wide.u32 %a4, %i, 4;
  ld.param.u64 %a0, [p0]; ld.param.u64 %a1, [p1]; ld.param.u64 %a2, [p2]; ld.param.u64 %a3, [po];
  add.s64 %a0, %a0, %a4; add.s64 %a1, %a1, %a4; add.s64 %a2, %a2, %a4;
  ld.global.u32 %x0, [%a0]; ld.global.u32 %x1, [%a1]; ld.global.u32 %x2, [%a2];
  {body}
  mad.wide.u32 %a3, %i, {width}, %a3; st.global.{wide} [%a3], %y; ret;
}}"""
    launch(text, "k", 1, block, [*(np.ascontiguousarray(x[:block]) for x in inputs), out])
    return out


def s32(v):
    return v - 2**32 if v >> 31 else v


def bfe(a, p, n, signed):
    p, n = p & 255, n & 255
    bits = [a >> i & 1 for i in range(32)]
    sign = (bits[min(p + n - 1, 31)] if n else 0) if signed else 0
    return sum((bits[p + i] if i < n and p + i < 32 else sign) << i for i in range(32))


def bfi(a, b, p, n):
    p, n = p & 255, n & 255
    for i in range(n):
        if p + i < 32:
            b = b & ~(1 << p + i) | (a >> i & 1) << p + i
    return b


def prmt(a, b, c):
    pool = (a | b << 32).to_bytes(8, "little")
    out = []
    for i in range(4):
        s = c >> 4 * i & 15
        byte = pool[s & 7]
        out.append((255 if byte >> 7 else 0) if s & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def lop3(a, b, c, table):
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32))


INTEGER = {
    "add.s32 %y, %x0, %x1;": lambda a, b, c: a + b,
    "sub.s32 %y, %x0, %x1;": lambda a, b, c: a - b,
    "mad.lo.s32 %y, %x0, %x1, %x2;": lambda a, b, c: a * b + c,
    "mul.hi.u32 %y, %x0, %x1;": lambda a, b, c: a * b >> 32,
    "mul.hi.s32 %y, %x0, %x1;": lambda a, b, c: s32(a) * s32(b) >> 32,
    "mul24.lo.u32 %y, %x0, %x1;": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "sad.s32 %y, %x0, %x1, %x2;": lambda a, b, c: abs(s32(a) - s32(b)) + c,
    "min.s32 %y, %x0, %x1;": lambda a, b, c: min(s32(a), s32(b)),
    "max.u32 %y, %x0, %x1;": lambda a, b, c: max(a, b),
    "abs.s32 %y, %x0;": lambda a, b, c: abs(s32(a)),
    "and.b32 %y, %x0, %x1;": lambda a, b, c: a & b,
    "not.b32 %y, %x0;": lambda a, b, c: ~a,
    "cnot.b32 %y, %x0;": lambda a, b, c: a == 0,
    "clz.b32 %y, %x0;": lambda a, b, c: 32 - a.bit_length(),
    "popc.b32 %y, %x0;": lambda a, b, c: a.bit_count(),
    "brev.b32 %y, %x0;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 %y, %x0;": lambda a, b, c: a.bit_length() - 1,
    "bfind.shiftamt.s32 %y, %x0;": lambda a, b, c: 32 - n if (n := max(s32(a), ~s32(a)).bit_length()) else -1,
    "prmt.b32 %y, %x0, %x1, %x2;": prmt,
    "lop3.b32 %y, %x0, %x1, %x2, 0xCA;": lambda a, b, c: lop3(a, b, c, 0xCA),
    "lop3.b32 %y, %x0, %x1, %x2, 0x96;": lambda a, b, c: a ^ b ^ c,
    "dp4a.u32.u32 %y, %x0, %x1, %x2;": lambda a, b, c: sum((a >> i & 255) * (b >> i & 255) for i in (0, 8, 16, 24)) + c,
    "add.cc.u32 %t0, %x0, %x1; addc.u32 %y, %x2, 0;": lambda a, b, c: c + (a + b >> 32),
    "sub.cc.u32 %t0, %x0, %x1; subc.u32 %y, %x2, 0;": lambda a, b, c: c - (a < b),
    "{ .reg .pred q; setp.lt.s32 q, %x0, %x1; selp.b32 %y, %x2, 7, q; }": lambda a, b, c: c if s32(a) < s32(b) else 7,
    "setp.lt.and.u32 %p0|%p1, %x0, %x1, !%p2; mov.u32 %y, 0; @%p0 add.u32 %y, %y, 1; @%p1 add.u32 %y, %y, 2;": None,
    "cvt.u16.u32 %h0, %x0; cvt.s32.s16 %y, %h0;": lambda a, b, c: (a & 0xFFFF) - (a >> 15 & 1) * 65536,
    "cvt.s32.s8 %y, %x0;": lambda a, b, c: (a & 0xFF) - (a >> 7 & 1) * 256,
    "cvt.sat.u8.s32 %y, %x0;": lambda a, b, c: min(max(s32(a), 0), 255),
    "mov.b64 %d0, {%x0, %x1}; shr.u64 %d0, %d0, 16; mov.b64 {%y, %t0}, %d0;": lambda a, b, c: (a | b << 32) >> 16,
    "mov.b32 {%h0, %h1}, %x0; mov.b32 %y, {%h1, %h0};": lambda a, b, c: a >> 16 | a << 16,
    "vote.sync.ballot.b32 %y, 0, 0xffffffff;": None,
    "sub.s16 %h2, %h2, %h2; cvt.u32.u16 %y, %h2;": None,
}  # fmt: skip
SHIFTS = {
    "shl.b32 %y, %x0, %x1;": lambda a, b, c: a << b if b < 32 else 0,
    "shr.u32 %y, %x0, %x1;": lambda a, b, c: a >> min(b, 63),
    "shr.s32 %y, %x0, %x1;": lambda a, b, c: s32(a) >> min(b, 31),
    "shf.l.wrap.b32 %y, %x0, %x2, %x1;": lambda a, b, c: (c << 32 | a) << (b & 31) >> 32,
    "shf.r.clamp.b32 %y, %x0, %x2, %x1;": lambda a, b, c: (c << 32 | a) >> min(b, 32),
    "bfe.u32 %y, %x0, %x1, %x2;": lambda a, b, c: bfe(a, b, c, False),
    "bfe.s32 %y, %x0, %x1, %x2;": lambda a, b, c: bfe(a, b, c, True),
    "bfi.b32 %y, %x0, 0x12345678, %x1, %x2;": lambda a, b, c: bfi(a, 0x12345678, b, c),
    "bmsk.clamp.b32 %y, %x1, %x2;": lambda a, b, c: ((1 << min(c, 32)) - 1) << min(b, 32),
}  # fmt: skip


@pytest.mark.parametrize("body", [k for k, v in INTEGER.items() if v])
def test_integer(body):
    got = run(body, WORDS)
    wanted = [int(INTEGER[body](*map(int, t))) & 0xFFFFFFFF for t in WORDS.T]
    assert got.tolist() == wanted


@pytest.mark.parametrize("body", SHIFTS)
def test_shifts_and_fields(body):
    inputs = [WORDS[0], SMALL[0], SMALL[1]]
    if "shf" in body:
        inputs[2] = WORDS[1]
    got = run(body, inputs)
    assert got.tolist() == [SHIFTS[body](*map(int, t)) & 0xFFFFFFFF for t in zip(*inputs, strict=True)]


FLOATS = np.concatenate([
    np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, 1.0, -1.5, 2.5, 0.5]),
    RNG.standard_normal(N - 12) * 10.0 ** RNG.integers(-20, 20, N - 12),
]).astype(np.float32)  # fmt: skip


def fraction_fma(a, b, c, mode):
    """fma by exact rationals, rounded by searching the neighbours."""
    from fractions import Fraction

    if not all(map(np.isfinite, (a, b, c))):
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = np.float32(float(exact)) if exact else np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    if not exact:
        return near
    if not np.isfinite(near):
        return {"rz": np.copysign(np.float32(3.4028235e38), near)}.get(mode, near)
    candidates = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    finite = [x for x in candidates if np.isfinite(x)]
    if mode == "rn":
        even = lambda x: struct.unpack("<I", struct.pack("<f", x))[0] & 1  # noqa: E731
        return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), even(x)))
    below = [x for x in finite if abs(Fraction(float(x))) <= abs(exact)]
    return min(below, key=lambda x: abs(Fraction(float(x)) - exact))


@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_fma_is_rounded_once(mode):
    rng = np.random.default_rng(11)
    a, b = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    c = (-a.astype(float) * b * (1 + rng.standard_normal(N) * 2.0 ** -rng.integers(10, 40, N))).astype(np.float32)
    got = run(f"fma.{mode}.f32 %y, %x0, %x1, %x2;", [x.view(np.uint32) for x in (a, b, c)]).view(np.float32)
    wanted = [fraction_fma(*t, mode) for t in zip(a, b, c, strict=True)]
    assert np.array_equal(got, np.array(wanted, np.float32), equal_nan=True)


def test_float_comparisons_treat_nan_as_documented():
    bits = FLOATS.view(np.uint32)
    other = np.roll(FLOATS, 1)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        core = {
            "eq": np.equal,
            "ne": np.not_equal,
            "lt": np.less,
            "le": np.less_equal,
            "gt": np.greater,
            "ge": np.greater_equal,
        }[name]
        unordered = np.isnan(FLOATS) | np.isnan(other)
        for suffix, wanted in (("", core(FLOATS, other) & ~unordered), ("u", core(FLOATS, other) | unordered)):
            got = run(
                f"setp.{name}{suffix}.f32 %p0, %x0, %x1; selp.u32 %y, 1, 0, %p0;", [bits, other.view(np.uint32), bits]
            )
            assert (got == wanted).all(), name + suffix


def test_min_max_prefer_numbers_and_order_zeros():
    bits = [np.array(x, np.float32).view(np.uint32).repeat(32) for x in ([0.0, np.nan], [-0.0, 1.0])]
    low = run("min.f32 %y, %x0, %x1;", [*bits, bits[0]]).view(np.float32)
    assert np.signbit(low[0]) and low[-1] == 1
    assert np.isnan(run("max.NaN.f32 %y, %x0, %x1;", [*bits, bits[0]]).view(np.float32)[-1])
    three = run("max.f32 %y, %x0, %x1, 0f40000000;", [*bits, bits[0]]).view(np.float32)
    assert (three == 2).all()


def test_ftz_and_sat():
    tiny = np.full(N, 1e-40, np.float32).view(np.uint32)
    assert (run("add.ftz.f32 %y, %x0, %x1;", [tiny] * 3) == 0).all()
    assert (run("add.f32 %y, %x0, %x1;", [tiny] * 3) != 0).all()
    got = run("add.sat.f32 %y, %x0, %x0;", [FLOATS.view(np.uint32)] * 3).view(np.float32)
    assert ((got >= 0) & (got <= 1)).all()


def test_float_to_integer_saturates():
    got = run("cvt.rzi.s32.f32 %y, %x0;", [FLOATS.view(np.uint32)] * 3).view(np.int32)
    assert got[:8].tolist() == [0, 0, 2**31 - 1, -(2**31), 0, 0, 0, 2**31 - 1]
    half = np.array([0.5, 1.5, 2.5, -0.5], np.float32).view(np.uint32).repeat(16)
    assert run("cvt.rni.s32.f32 %y, %x0;", [half] * 3).view(np.int32)[::16].tolist() == [0, 2, 2, 0]


def test_packed_conversions_put_the_first_operand_above():
    one, two = (np.full(N, x, np.float32).view(np.uint32) for x in (1.0, 2.0))
    assert (run("cvt.rn.f16x2.f32 %y, %x0, %x1;", [one, two, one]) == 0x3C004000).all()
    assert (run("cvt.rn.bf16x2.f32 %y, %x0, %x1;", [one, two, one]) == 0x3F804000).all()
    body = "cvt.rn.satfinite.e4m3x2.f32 %h0, %x0, %x1; cvt.u32.u16 %y, %h0;"
    assert (run(body, [one, two, one]) == 0x3840).all()
    assert (
        run("cvt.rn.satfinite.e4m3x2.f32 %h0, %x0, %x1; cvt.rn.f16x2.e4m3x2 %y, %h0;", [one, two, one]) == 0x3C004000
    ).all()


def test_f32x2_works_on_both_halves():
    body = "mov.b64 %d0, {%x0, %x1}; mov.b64 %d1, {%x1, %x2}; fma.rn.f32x2 %y, %d0, %d1, %d0;"
    x = [RNG.standard_normal(N).astype(np.float32) for _ in range(3)]
    got = run(body, [v.view(np.uint32) for v in x], width=8).view(np.float32).reshape(N, 2)
    low = (x[0].astype(float) * x[1] + x[0]).astype(np.float32)
    assert np.allclose(got[:, 0], low, rtol=1e-6) and np.allclose(
        got[:, 1], x[1].astype(float) * x[2] + x[1], rtol=1e-5, atol=1e-6
    )


def test_branch_table_takes_each_lane_its_own_way():
    body = """
      and.b32 %t0, %x0, 3;
      table: .branchtargets L0, L1, L2, L3;
      brx.idx %t0, table;
      L0: mov.u32 %y, 10; bra END;
      L1: mov.u32 %y, 11; bra END;
      L2: mov.u32 %y, 12; bra END;
      L3: mov.u32 %y, 13;
      END: bar.warp.sync 0xffffffff;"""
    assert run(body, WORDS).tolist() == [10 + (int(a) & 3) for a in WORDS[0]]


def test_constants_and_generic_addresses():
    text = f"""{HEADER}
.const .align 4 .u32 table[4] = {{5, 6, 7, 8}};
.global .align 8 .b8 bytes[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};
.visible .entry k(.param .u64 po) {{
  .local .align 8 .b8 mine[16]; .reg .b64 %a<8>; .reg .b32 %r<8>; .reg .b128 %q;
  ld.param.u64 %a0, [po]; mov.u32 %r0, %tid.x;
  ld.const.u32 %r1, [table+8];
  mov.u64 %a1, bytes; cvta.global.u64 %a1, %a1; ld.u8 %r2, [%a1+3];
  mov.u64 %a2, mine; st.local.v2.u32 [%a2], {{%r0, %r1}}; cvta.local.u64 %a3, %a2; ld.u32 %r3, [%a3];
  ld.u64 %a4, [%a3]; mov.b128 %q, {{%a4, %a3}}; mov.b128 {{%a5, _}}, %q;
  add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; cvt.u32.u64 %r4, %a5; add.u32 %r1, %r1, %r4;
  mad.wide.u32 %a0, %r0, 4, %a0; st.global.u32 [%a0], %r1; ret;
}}"""
    out = np.zeros(32, np.uint32)
    launch(text, None, 1, 32, [out])
    assert out.tolist() == [7 + 4 + 2 * i for i in range(32)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("frobnicate.b32 %y, %x0;", "unknown instruction frobnicate"),
        ("add.frob.s32 %y, %x0, %x1;", r"unknown modifier \.frob"),
        ("shfl.frob.b32 %y, %x0, 0, 31;", r"known of this family: shfl\.sync"),
        ("mov.u32 %y, %nonsense;", "special register %nonsense is not modelled"),
        ("mov.u32 %y, nowhere;", "neither a label nor declared"),
        ("add.s64 %y, %x0, %x1;", "cannot be written as|too narrow"),
        ("add.u32 %y, %x0, %t5;", "register %t5, which was never written"),
        ("ld.global.u32 %y, [%a0+4096];", "past the end of argument 0"),
        ("ld.global.u32 %y, [%a0+2];", "not a multiple of 4"),
        ("trap;", "the kernel stopped itself"),
        ("@%p3 bra L; L: mov.u32 %y, 0;", "%p3, which was never written"),
    ],
)  # fmt: skip
def test_refusals_name_the_place(body, message):
    with pytest.raises(EmulatorError, match=message) as caught:
        run(body, WORDS)
    assert "PTX line" in str(caught.value)


def test_a_test_wait_that_can_never_succeed_is_a_deadlock():
    body = """
      .reg .b32 %bar; mov.u32 %bar, 0; mov.u32 %y, 0;
      mov.u32 %bar, box; setp.eq.u32 %p0, %i, 0; @%p0 mbarrier.init.shared::cta.b64 [%bar], 1; bar.sync 0;
      LOOP: mbarrier.test_wait.parity.shared::cta.b64 %p1, [%bar], 0; @!%p1 bra LOOP;"""
    with pytest.raises(EmulatorError, match="repeats a loop that changes nothing"):
        run(body, WORDS, registers=".shared .align 8 .b64 box;")


def test_lanes_that_miss_a_barrier_are_named():
    body = "mov.u32 %y, 0; setp.lt.u32 %p0, %i, 40; @%p0 bar.sync 1, 64; @!%p0 bar.sync 2, 64;"
    with pytest.raises(EmulatorError, match="the guard is false in some"):
        run(body, WORDS)
