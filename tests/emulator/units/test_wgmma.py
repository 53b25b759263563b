"""wgmma queues: results against a plain product, lateness, groups, and the mistakes."""

import numpy as np
import pytest

from kgen.emulator import fragments
from kgen.emulator.descriptors import K_MAJOR, MN_MAJOR, MatrixDescriptor, element_addresses
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.wgmma import Registers, Wgmma, WgmmaKind
from kgen.errors import EmulatorError
from units.conftest import Bench

BF16 = WgmmaKind(32, "bf16", "bf16", "f32")


def bf16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


class Group:
    """A warpgroup with its registers, and operands in shared memory."""

    def __init__(self, kind=BF16, seed=0, arithmetic="exact"):
        self.kind, self.b = kind, Bench(init=True)
        self.unit = Wgmma(self.b.units, self.b.units.ctas[0], arithmetic=arithmetic)
        count = kind.n // (4 if kind.d_format == "f16" else 2)
        self.acc = np.zeros((4, 32, count), np.uint32)
        self.a_regs = np.zeros((4, 32, 4), np.uint32)
        self.rng = np.random.default_rng(seed)

    def place(self, start, matrix, trans=False, swizzle=Swizzle.B128):
        """Writes codes [rows, k] where the returned descriptor finds them."""
        esz = matrix.itemsize
        lbo = 8192 if trans else 0
        desc = MatrixDescriptor("sm_90", start, lbo, 1024, swizzle)
        at = element_addresses(desc, *matrix.shape, esz, MN_MAJOR if trans else K_MAJOR)
        self.b.smem().view(matrix.dtype)[at // esz] = matrix
        return desc.encode()

    def registers(self, w, with_a=False):
        def write(values):
            self.acc[w] = values

        d = frozenset(f"%f{i}" for i in range(self.acc.shape[2]))
        a = frozenset(f"%r{i}" for i in range(4)) if with_a else frozenset()
        return Registers(lambda: self.acc[w], write, (lambda: self.a_regs[w]) if with_a else None, d, a)

    def issue(self, a, b, scale_d=True, kind=None, with_a=False):
        for w in range(4):
            self.unit.mma(w, self.b.warps[w], kind or self.kind, a, b, scale_d, self.registers(w, with_a))

    def each(self, name, *args):
        for w in range(4):
            getattr(self.unit, name)(w, *args)

    def wait(self, n):
        for w in range(4):
            assert self.unit.wait_ready(w, n)
            self.unit.wait(w, self.b.warps[w], n)

    def d(self):
        n = self.kind.n
        out = np.zeros((64, n), np.uint32)
        half = self.kind.d_format == "f16"
        values = self.acc.reshape(128, -1)
        out[fragments.wgmma_d(n, half)] = fragments.unpack(values, 16) if half else values
        return out.astype(np.uint16).view(np.float16) if half else out.view(np.float32)


def small(rng, shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("arithmetic", ["exact", "fast"])
@pytest.mark.parametrize("trans_b", [False, True])
def test_a_chain_of_k_steps(arithmetic, trans_b):
    g = Group(WgmmaKind(32, "bf16", "bf16", "f32", trans_b=trans_b), arithmetic=arithmetic)
    a, b = small(g.rng, (64, 64)), small(g.rng, (32, 64))
    g.acc[:] = 0x7FC00000  # NaN: the first step must not read it
    desc_a, desc_b = g.place(0x400, bf16(a)), g.place(0x4000, bf16(b), trans_b)
    g.each("fence")
    for k in range(4):
        step_b = k * 128 if trans_b else 2 * k
        g.issue(desc_a + 2 * k, desc_b + step_b, scale_d=k > 0)
    g.each("commit")
    assert (g.acc == 0x7FC00000).all()
    g.wait(0)
    assert (g.d() == a @ b.T).all()


def test_a_from_registers_negated_and_f16_results():
    g = Group(WgmmaKind(16, "f16", "f16", "f16", negate_a=True))
    a, b = small(g.rng, (64, 16)), small(g.rng, (16, 16))
    codes = a.astype(np.float16).view(np.uint16)
    g.a_regs[:] = fragments.pack(codes[fragments.wgmma_a(16)], 16).reshape(4, 32, 4)
    g.each("fence")
    g.issue(None, g.place(0x4000, b.astype(np.float16).view(np.uint16)), False, with_a=True)
    g.each("commit")
    g.wait(0)
    assert (g.d() == -(a @ b.T)).all()


def test_integers():
    g = Group(WgmmaKind(8, "s8", "u8", "s32"))
    a = g.rng.integers(-128, 128, (64, 32)).astype(np.int8)
    b = g.rng.integers(0, 256, (8, 32)).astype(np.uint8)
    g.each("fence")
    g.issue(g.place(0x400, a.view(np.uint8)), g.place(0x4000, b), False)
    g.each("commit")
    g.wait(0)
    assert (g.d().view(np.int32) == a.astype(np.int32) @ b.T.astype(np.int32)).all()


def test_operands_are_read_at_the_wait_and_checked_before():
    g = Group()
    one = bf16(np.ones((64, 16)))
    desc_a, desc_b = g.place(0x400, one), g.place(0x4000, one[:32])
    g.each("fence")
    g.issue(desc_a, desc_b, False)
    g.each("commit")
    g.place(0x400, bf16(np.full((64, 16), 2)))  # behind the tracker's back
    g.wait(0)
    assert (g.d() == 32).all()


def test_overwriting_an_operand_before_the_wait(fails):
    g = Group()
    one = bf16(np.ones((64, 16)))
    g.each("fence")
    g.issue(g.place(0x400, one), g.place(0x4000, one[:32]), False)
    g.each("commit")
    hazards, warp, other = g.b.units.ctas[0].hazards, g.b.warps[0], g.b.units.order.actor("other")
    row = 0x400 + 4 * np.arange(4)
    with fails("smem-overwritten-in-flight", "wgmma m64n32k16 f32.bf16.bf16 .A."):
        hazards.generic_write(warp, row, 4, "st.shared", np.arange(4))
    g.wait(0)
    with fails("smem-overwritten-unobserved"):
        hazards.generic_write(other, row, 4, "st.shared", np.arange(4))
    hazards.generic_write(warp, row, 4, "st.shared", np.arange(4))


def test_wait_one_completes_all_but_the_latest_group():
    g = Group()
    one = bf16(np.ones((64, 16)))
    a, b = g.place(0x400, one), g.place(0x4000, one[:32])
    g.each("fence")
    for i in range(3):
        g.issue(a, b, i > 0)
        g.each("commit")
    g.wait(1)
    assert (g.d() == 32).all()
    g.wait(0)
    assert (g.d() == 48).all()


def test_a_warp_waits_for_the_others_to_issue():
    g = Group()
    one = bf16(np.ones((64, 16)))
    a, b = g.place(0x400, one), g.place(0x4000, one[:32])
    g.each("fence")
    for w in range(3):
        g.unit.mma(w, g.b.warps[w], BF16, a, b, False, g.registers(w))
        g.unit.commit(w)
    assert not g.unit.wait_ready(0, 0) and g.unit.wait_ready(0, 1)
    assert g.unit.waits_for(0, 0) == "warpgroup: warps [3] have not committed wgmma group 0"


def test_every_warp_must_know_that_the_operands_are_there(fails):
    """One warp waited for the data and told nobody."""
    g = Group()
    one = bf16(np.ones((64, 16)))
    a, b = g.place(0x400, one), g.place(0x4000, one[:32])
    full, hazards, producer = g.b.barrier(0), g.b.units.ctas[0].hazards, g.b.units.order.actor("producer")
    flight = hazards.begin_write(0x400 // 4 + np.arange(32), producer.known, "TMA load")
    hazards.landed(flight, full.fact, full.phase, full.name)
    full.arrive()
    g.each("fence")
    for w in range(4):
        assert full.test(0, g.b.warps[w]) or w == 2
        if w == 3:
            with fails("smem-read-unobserved", "phase 0"):
                g.unit.mma(w, g.b.warps[w], BF16, a, b, False, g.registers(w))
        else:
            g.unit.mma(w, g.b.units.order.actor("late") if w == 2 else g.b.warps[w], BF16, a, b, False, g.registers(w))


def test_warps_that_disagree(fails):
    g = Group()
    one = bf16(np.ones((64, 16)))
    a, b = g.place(0x400, one), g.place(0x4000, one[:32])
    g.each("fence")
    g.unit.mma(0, g.b.warps[0], BF16, a, b, False, g.registers(0))
    with fails("wgmma-warps-disagree"):
        g.unit.mma(1, g.b.warps[1], BF16, a + 2, b, False, g.registers(1))


def test_registers_in_flight(fails):
    g = Group()
    one = bf16(np.ones((64, 16)))
    g.each("fence")
    g.issue(None, g.place(0x4000, one[:32]), False, with_a=True)
    g.each("commit")
    assert g.unit.busy(0)
    with fails("wgmma-registers-in-flight", "add.f32 reads %f3, an accumulator"):
        g.unit.check_access(0, ["%f3"], [], "add.f32")
    with fails("wgmma-registers-in-flight", "mov writes %r1, an A operand"):
        g.unit.check_access(0, [], ["%r1"], "mov")
    g.unit.check_access(0, ["%r1", "%f99"], ["%f99"], "mov")
    with fails("wgmma-unwaited-at-exit"):
        g.unit.exit(0)
    g.wait(0)
    g.unit.check_access(0, ["%f3"], ["%r1"], "add.f32")
    assert not g.unit.busy(0)
    g.unit.exit(0)


def test_fences(fails):
    g = Group()
    one = bf16(np.ones((64, 16)))
    a, b = g.place(0x400, one), g.place(0x4000, one[:32])
    with fails("wgmma-missing-fence", "before the first"):
        g.issue(a, b)
    g = Group()
    g.each("fence")
    g.unit.note_write(0, ["%f5"])
    with fails("wgmma-missing-fence", "%f5 was changed"):
        g.issue(a, b)
    g = Group()
    g.unit.note_write(0, ["%f5"])
    g.each("fence")
    g.issue(a, b)
    with fails("wgmma-missing-fence", "another shape"):
        g.issue(a, b, kind=WgmmaKind(16, "bf16", "bf16", "f32"))


@pytest.mark.parametrize(
    "kind",
    [
        WgmmaKind(12, "f16", "f16", "f32"),
        WgmmaKind(40, "s8", "s8", "s32"),
        WgmmaKind(32, "e4m3", "e4m3", "f32", trans_b=True),
        WgmmaKind(32, "f16", "e4m3", "f32"),
    ],
)
def test_what_does_not_exist(kind):
    with pytest.raises(EmulatorError, match="wgmma"):
        kind.check(False)
