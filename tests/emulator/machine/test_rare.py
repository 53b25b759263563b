"""Instructions that kernels seldom use: prmt modes, mad with carry, lop3 with a predicate, 128-bit atomics, byte
matrices, st.bulk, red.async; and what is refused, with the reason."""

import numpy as np
import pytest

from kgen.emulator.check_names import NAMES
from kgen.emulator.launch import launch
from kgen.errors import EmulatorError

from .test_isa import HEADER, WORDS, lop3, run, s32

MODES = {
    "f4e": ["3210", "4321", "5432", "6543"], "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"], "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"], "rc16": ["1010", "3232", "1010", "3232"],
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_prmt_modes(mode):
    got = run(f"prmt.b32.{mode} %y, %x0, %x1, %x2;", WORDS)
    for a, b, c, r in zip(*WORDS.tolist(), got.tolist(), strict=True):
        pool = (a | b << 32).to_bytes(8, "little")
        assert r == int.from_bytes(bytes(pool[int(d)] for d in MODES[mode][c & 3]), "big")


def test_multiplication_in_words_carries():
    body = """mad.lo.cc.u32 %t0, %x0, %x1, %x2; madc.hi.u32 %t1, %x0, %x1, 5;
              mov.b64 %y, {%t0, %t1};"""
    got = run(body, WORDS, width=8)
    assert got.tolist() == [(a * b + c + (5 << 32)) % 2**64 for a, b, c in WORDS.T.tolist()]
    got = run("mad.hi.sat.s32 %y, %x0, %x1, %x2;", WORDS)
    wanted = [
        min(max((s32(a) * s32(b) >> 32) + s32(c), -(2**31)), 2**31 - 1) & 0xFFFFFFFF for a, b, c in WORDS.T.tolist()
    ]
    assert got.tolist() == wanted


def test_lop3_with_a_predicate():
    body = """setp.lt.u32 %p0, %x0, 0x80000000; lop3.and.b32 %t0|%p1, %x0, %x1, %x2, 0xC0, %p0;
              lop3.or.b32 _|%p2, %x0, %x1, %x2, 0xC0, !%p0; mov.u32 %y, 0;
              @%p1 add.u32 %y, %y, 1; @%p2 add.u32 %y, %y, 2;"""
    got = run(body, WORDS)
    for a, b, c, r in zip(*WORDS.tolist(), got.tolist(), strict=True):
        some, q = lop3(a, b, c, 0xC0) != 0, a < 0x80000000
        assert r == (some and q) + 2 * (some or not q)


def test_128_bit_atomics():
    text = f"""{HEADER}.visible .entry k(.param .u64 p) {{ .reg .b64 %a, %l, %h; .reg .b128 %o, %n, %r;
      ld.param.u64 %a, [p]; mov.b64 %l, 1; mov.b64 %h, 2; mov.b128 %o, {{%l, %h}}; mov.b128 %n, {{%h, %l}};
      atom.relaxed.gpu.global.cas.b128 %r, [%a], %o, %n; st.global.b128 [%a+16], %r;
      atom.global.exch.b128 %r, [%a], %o; st.global.b128 [%a+32], %r; ret; }}"""
    data = np.array([1, 2, 0, 0, 0, 0], np.uint64)
    launch(text, "k", 1, 1, [data])
    assert data.tolist() == [1, 2, 1, 2, 2, 1]


def test_an_unwritten_128_bit_register_is_noticed():
    text = f"""{HEADER}.visible .entry k(.param .u64 p) {{ .reg .b64 %a; .reg .b128 %r;
      ld.param.u64 %a, [p]; st.global.b128 [%a], %r; ret; }}"""
    with pytest.raises(EmulatorError, match=r"uninitialised-register.*%r"):
        launch(text, "k", 1, 1, [np.zeros(2, np.uint64)])


def matrix(load, rows, registers):
    """uint8 [32, registers, 4] that `load` takes from 32 rows of 16 bytes, row i at the address lane i gives."""
    regs = ", ".join(f"%r{i}" for i in range(registers))
    stores = " ".join(f"st.global.u32 [%b+{4 * i}], %r{i};" for i in range(registers))
    text = f"""{HEADER}.visible .entry k(.param .u64 p, .param .u64 o) {{ .shared .align 16 .b8 s[512];
      .reg .b64 %a, %b; .reg .b32 %i, %s, %r<4>, %x<4>; mov.u32 %i, %tid.x; ld.param.u64 %a, [p];
      mad.wide.u32 %a, %i, 16, %a; ld.global.v4.u32 {{%x0, %x1, %x2, %x3}}, [%a]; mov.u32 %s, s;
      mad.lo.u32 %s, %i, 16, %s;
      st.shared.v4.u32 [%s], {{%x0, %x1, %x2, %x3}}; bar.sync 0;
      {load} {{{regs}}}, [%s]; ld.param.u64 %b, [o]; mad.wide.u32 %b, %i, {4 * registers}, %b; {stores} ret; }}"""
    out = np.zeros((32, registers, 4), np.uint8)
    launch(text, "k", 1, 32, [rows, out])
    return out


def test_byte_matrices():
    rows = np.random.default_rng(1).integers(0, 256, (32, 16)).astype(np.uint8)
    lanes = np.arange(32)
    for x in (1, 2):
        got = matrix(f"ldmatrix.sync.aligned.m16n16.x{x}.trans.shared.b8", rows, 2 * x)
        for q in range(x):
            columns = rows[16 * q : 16 * q + 16].T
            for lane in lanes:
                # Two rows of the transposed matrix, four columns of each.
                mine = np.sort(got[lane, 2 * q : 2 * q + 2].reshape(-1))
                assert (
                    mine.tolist()
                    == np.sort(columns[[lane // 4, lane // 4 + 8], 4 * (lane % 4) :][:, :4].reshape(-1)).tolist()
                )
    nibbles = np.stack([rows & 15, rows >> 4], 2).reshape(32, 32)[:, :16]
    got = matrix("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", rows, 4)
    assert got.transpose(1, 0, 2).reshape(32, 16).tolist() == nibbles.tolist()
    words = [int.from_bytes(r.tobytes(), "little") for r in rows]
    got = matrix("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32", rows, 1)
    assert got.reshape(8, 16).tolist() == [[w >> 6 * i & 63 for i in range(16)] for w in words[:8]]


def test_stored_byte_matrices_come_back():
    text = f"""{HEADER}.visible .entry k(.param .u64 o) {{ .shared .align 16 .b8 s[128];
      .reg .b64 %b, %n; .reg .b32 %i, %j, %s, %t, %r; mov.u32 %i, %tid.x; mov.u32 %s, s; and.b32 %j, %i, 7;
      mad.lo.u32 %t, %j, 16, %s; mul.lo.u32 %r, %i, 0x04040404; add.u32 %r, %r, 0x03020100; mov.b64 %n, 128;
      setp.eq.u32 %p, %i, 0; @%p st.bulk.shared::cta [%s], %n, 0; bar.sync 0;
      stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%t], {{%r}}; bar.sync 0; mad.lo.u32 %t, %i, 4, %s;
      ld.shared.u32 %r, [%t]; ld.param.u64 %b, [o]; mad.wide.u32 %b, %i, 4, %b; st.global.u32 [%b], %r; ret; }}"""
    out = np.zeros((8, 16), np.uint8)
    launch(text.replace(".reg .b64 %b", ".reg .pred %p; .reg .b64 %b"), "k", 1, 32, [out])
    assert sorted(out.reshape(-1).tolist()) == list(range(128))
    lane = 13  # holds rows 2 and 3, bytes 3 and 11
    assert [out[2, 3], out[3, 3], out[2, 11], out[3, 11]] == [4 * lane + i for i in range(4)]


def test_red_async_adds_and_completes():
    text = f"""{HEADER}.visible .entry k(.param .u64 o) .reqnctapercluster 2 {{
      .shared .align 8 .b64 bar; .shared .b32 n;
      .reg .pred %p; .reg .b64 %b; .reg .b32 %c, %r, %m, %x;
      mov.u32 %c, %cluster_ctarank; mov.u32 %m, bar; mov.u32 %x, n;
      mov.u32 %r, 5; st.shared.u32 [n], %r; mbarrier.init.shared.b64 [bar], 1;
      mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4;
      barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %c, %c, 1;
      mapa.shared::cluster.u32 %m, %m, %c; mapa.shared::cluster.u32 %x, %x, %c;
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%x], 37, [%m];
L:    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra L; ld.shared.u32 %r, [n];
      ld.param.u64 %b, [o]; mad.wide.u32 %b, %c, 4, %b; st.global.u32 [%b], %r;
      barrier.cluster.arrive; barrier.cluster.wait; ret; }}"""
    out = np.zeros(2, np.uint32)
    launch(text, "k", 2, 1, [out])
    assert out.tolist() == [42, 42]


@pytest.mark.parametrize(("text", "reason"), [
    ("multimem.ld_reduce.global.add.u32 %y, [%a0];", "several devices"),
    ("tcgen05.shift.cta_group::1.down [%x0];", "the first row"),
    ("cvt.rs.satfinite.e2m1x4.f32 %h0, {%f0, %f0, %f0, %f0}, %x0;", "figure"),
])  # fmt: skip
def test_refusals_say_why(text, reason):
    with pytest.raises(EmulatorError, match=reason):
        run(text, WORDS)


def test_unknown_checks_are_reported_with_the_nearest_name():
    text = f"{HEADER}.visible .entry k() {{ ret; }}"
    with pytest.raises(EmulatorError, match=r"'unitialised-shared'.*'uninitialised-shared'"):
        launch(text, "k", 1, 32, [], warn=["unitialised-shared"])
    launch(text, "k", 1, 32, [], warn=["all"], strict=sorted(NAMES))
