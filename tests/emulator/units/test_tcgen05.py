"""Order and completion of tcgen05: queues, commit, hand-overs, cp, and the mistakes."""

import dataclasses

import numpy as np
import pytest

from kgen.emulator.descriptors import MatrixDescriptor
from kgen.emulator.swizzle import Swizzle
from kgen.errors import EmulatorError
from units.tensor_core import A_AT, SF_AT, SFA, TensorCore, problem

RNG = np.random.default_rng(12)


def core(ctas=1, seed=0, **more):
    t = TensorCore(ctas, seed, **more)
    idesc, a, b, t.want = problem(RNG, "f16", 128 * ctas, 32, "bf16", "bf16")
    t.o = t.operands(idesc, a, b, accumulate=False)
    t.again = dataclasses.replace(t.o, accumulate=True)
    return t


def read(t, actor, column=0, warp=0):
    got = []
    t.io[0].ld(actor, warp, "32x32b", 32, column, got.append)
    t.io[0].wait_ld(actor)
    return got[0].view(np.float32)


def test_mma_commit_wait_fence_load():
    t = core()
    issuer, reader = t.warps[:2]
    full = t.barrier(0)
    t.core.mma(issuer, 0, 1, t.o)
    t.core.mma(issuer, 0, 1, t.again)
    t.core.commit(issuer, 0, 1, 0)
    assert not full.test(0, reader)
    steps = 0
    while not full.test(0, reader):
        assert t.agenda.step()
        steps += 1
    assert steps == 3  # in order: mma, mma, commit
    t.core.fence_after(reader)
    assert (read(t, reader) == 2 * t.want[:32]).all()
    assert not t.monitor.warnings


def test_load_without_waiting(fails):
    t = core()
    t.barrier(0)
    t.core.mma(t.warps[0], 0, 1, t.o)
    t.core.commit(t.warps[0], 0, 1, 0)
    for actor in t.warps[:2]:
        with fails("tmem-read-before-commit", "tcgen05.ld.32x32b.x32", "wait for a tcgen05.commit"):
            read(t, actor)
    t.agenda.drain()  # even if it happens to be complete
    with fails("tmem-read-before-commit"):
        read(t, t.warps[1])


def test_load_without_fence_after_warns():
    t = core()
    full = t.barrier(0)
    t.core.mma(t.warps[0], 0, 1, t.o)
    t.core.commit(t.warps[0], 0, 1, 0)
    t.agenda.drain()
    assert full.test(0, t.warps[1])
    read(t, t.warps[1])
    assert [w.check for w in t.monitor.warnings] == ["tmem-missing-fence-after"]


def test_a_commit_of_earlier_work_only(fails):
    """commit before the last mma: the wait covers less than it seems."""
    t = core()
    full = t.barrier(0)
    t.core.mma(t.warps[0], 0, 1, t.o)
    t.core.commit(t.warps[0], 0, 1, 0)
    t.core.mma(t.warps[0], 0, 1, t.again)
    t.agenda.drain()
    assert full.test(0, t.warps[1])
    t.core.fence_after(t.warps[1])
    with fails("tmem-read-before-commit"):
        read(t, t.warps[1])


def test_commit_with_nothing_outstanding_arrives():
    t = core()
    full = t.barrier(0)
    t.core.commit(t.warps[0], 0, 1, 0)
    t.agenda.drain()
    assert full.phase == 1


def test_commit_by_every_lane_overflows_the_barrier(fails):
    t = core()
    t.barrier(0, count=2).expect_tx(16)  # bytes are missing, so the phase cannot end meanwhile
    with fails("mbarrier-arrival-overflow", "tcgen05.commit by warp 0 x2"):
        for _ in range(32):
            t.core.commit(t.warps[0], 0, 1, 0)
        t.agenda.drain()


def test_operands_may_be_reused_after_the_commit(fails):
    t = core()
    empty = t.barrier(0)
    hazards, issuer, producer = t.units.ctas[0].hazards, t.warps[0], t.warps[1]
    t.core.mma(issuer, 0, 1, t.o)
    t.core.commit(issuer, 0, 1, 0)
    words = A_AT // 4 + np.arange(32)
    with fails("smem-overwritten-in-flight", "tcgen05.mma kind::f16 128x32x16 cta_group::1 .A."):
        hazards.begin_write(words, producer.known, "TMA load")
    t.agenda.drain()
    with fails("smem-overwritten-unobserved"):
        hazards.begin_write(words, producer.known, "TMA load")
    assert empty.test(0, producer)
    hazards.begin_write(words, producer.known, "TMA load")


def test_unfenced_operand(fails):
    t = core()
    writer, issuer = t.warps[1], t.warps[0]
    t.units.ctas[0].hazards.generic_write(writer, A_AT + 4 * np.arange(32), 4, "st.shared")
    issuer.acquire(writer.release())
    with fails("async-read-unfenced", "tcgen05.mma"):
        t.core.mma(issuer, 0, 1, t.o)


def test_commits_arrive_in_order_and_before_the_end_of_the_cta():
    for seed in range(10):
        t = core(seed=seed)
        bars = [t.barrier(8 * i) for i in range(3)]
        for bar in range(3):
            t.core.mma(t.warps[0], 0, 1, t.o)
            t.core.commit(t.warps[0], 0, 1, 8 * bar)
        while not bars[1].phase:
            t.agenda.step()
        assert bars[0].phase == 1 and t.agenda.pending() != bool(bars[2].phase)
        t.units.ctas[0].exit()  # nobody waits for the last one
        assert bars[2].phase == 1


def test_a_commit_to_a_peer_that_has_exited(fails):
    t = core(2)
    t.barrier(0x20, rank=1)
    t.core.mma(t.warps[0], 0, 2, t.o)
    t.core.commit(t.warps[0], 0, 2, t.at(0, 0x20), mask=0b10)
    t.agenda.step()
    t.units.ctas[1].exit()
    with fails("mbarrier-exited-cta", "tcgen05.commit by warp 0"):
        t.agenda.drain()


# --- epilogue and producer of tensor memory -----------------------------------------------------------------


def drained(t):
    """mma, commit, and warp 1 has waited and read."""
    issuer, reader = t.warps[:2]
    full, empty = t.barrier(0), t.barrier(8)
    t.core.mma(issuer, 0, 1, t.o)
    t.core.commit(issuer, 0, 1, 0)
    t.agenda.drain()
    assert full.test(0, reader)
    t.core.fence_after(reader)
    return issuer, reader, empty


def test_accumulator_hand_back(fails):
    t = core()
    issuer, reader, empty = drained(t)
    read(t, reader)
    t.core.fence_before(reader)
    empty.arrive(actor=reader)
    with fails("tmem-missing-wait-ld", "synchronisation after it"):
        t.core.mma(issuer, 0, 1, t.o)  # issuer did not wait for the barrier
    assert empty.test(0, issuer)
    t.core.fence_after(issuer)
    t.core.mma(issuer, 0, 1, t.o)
    assert not t.monitor.warnings


def test_accumulator_hand_back_without_wait_ld(fails):
    t = core()
    issuer, reader, empty = drained(t)
    t.io[0].ld(reader, 0, "32x32b", 32, 0, lambda v: None)
    t.core.fence_before(reader)
    empty.arrive(actor=reader)
    t.io[0].wait_ld(reader)  # too late: after the arrive
    assert empty.test(0, issuer)
    t.core.fence_after(issuer)
    with fails("tmem-missing-wait-ld"):
        t.core.mma(issuer, 0, 1, t.o)


def test_hand_back_without_fences_warns():
    t = core()
    issuer, reader, empty = drained(t)
    read(t, reader)
    empty.arrive(actor=reader)
    assert empty.test(0, issuer)
    t.core.mma(issuer, 0, 1, t.o)
    assert [w.check for w in t.monitor.warnings] == ["tmem-missing-fence-before"]


def test_a_operand_stored_by_warps(fails):
    t = TensorCore()
    idesc, a, b, _ = problem(RNG, "f16", 128, 32, "bf16", "bf16")
    o = t.operands(idesc, a, b, accumulate=False, a_in_tmem=True)
    issuer, writer, ready = t.warps[0], t.warps[1], t.barrier(0)

    def hand_over(wait):
        t.io[0].st(writer, 1, "32x32b", 8, 32 << 16 | 256, np.zeros((32, 8)))
        if wait:
            t.io[0].wait_st(writer)
        t.core.fence_before(writer)
        phase = ready.phase & 1
        ready.arrive(actor=writer)
        assert ready.test(phase, issuer)
        t.core.fence_after(issuer)
        t.core.mma(issuer, 0, 1, o)

    with fails("tmem-missing-wait-st", "tcgen05.st of warp 1"):
        hand_over(False)
    t.io[0].wait_st(writer)
    hand_over(True)
    assert not t.monitor.warnings
    with fails("tmem-overwritten-in-flight", "tcgen05.st"):
        hand_over(True)  # the mma may still read A


def test_tmem_of_another_thread_needs_fences_but_no_completion():
    """cp in one warp, mma in another: before_thread_sync, arrive, wait, after_thread_sync keep the order."""
    for seed in range(8):
        t = core(seed=seed)
        one, two, bar = t.warps[0], t.warps[1], t.barrier(0)
        t.core.mma(one, 0, 1, t.o)
        t.core.fence_before(one)
        bar.arrive(actor=one)
        assert bar.test(0, two)
        t.core.fence_after(two)
        t.core.mma(two, 0, 1, t.again)
        t.agenda.drain()
        assert (t.d(128, 32).view(np.float32) == 2 * t.want).all()
        assert not t.monitor.warnings


def test_tmem_of_another_thread_without_edge(fails):
    t = core()
    t.core.mma(t.warps[0], 0, 1, t.o)
    with fails("tmem-overwritten-in-flight"):
        t.core.mma(t.warps[1], 0, 1, t.again)


def test_independent_threads_complete_in_any_order():
    first = set()
    for seed in range(20):
        t = core(seed=seed)
        bars = [t.barrier(0), t.barrier(8)]
        for i in range(2):
            t.core.mma(t.warps[i], 0, 1, dataclasses.replace(t.o, d=64 * i))
            t.core.commit(t.warps[i], 0, 1, 8 * i)
        while not any(b.phase for b in bars):
            t.agenda.step()
        first.add(bars[1].phase)
    assert first == {0, 1}


# --- pairs ----------------------------------------------------------------------------------------------


def test_pair_with_multicast_commit():
    t = core(2)
    bars = [t.barrier(0x20, rank=r) for r in range(2)]
    t.core.mma(t.warps[0], 0, 2, t.o)
    t.core.commit(t.warps[0], 0, 2, t.at(0, 0x20), mask=0b11)
    t.agenda.drain()
    assert [b.phase for b in bars] == [1, 1]
    assert (t.d(256, 32).view(np.float32) == t.want).all()
    reader = t.warps[1]
    assert bars[1].test(0, reader)
    t.core.fence_after(reader)
    got = []
    t.io[1].ld(reader, 0, "32x32b", 32, 0, got.append)
    t.io[1].wait_ld(reader)
    assert (got[0].view(np.float32) == t.want[128:160]).all()


def test_pair_mistakes(fails):
    t = core()
    with fails("cluster-rank"):
        t.core.mma(t.warps[0], 0, 2, t.o)
    t = core(2)
    t.core.mma(t.warps[0], 0, 2, t.o)
    t.barrier(0)
    with fails("tcgen05-cta-group"):
        t.core.commit(t.warps[0], 0, 1, 0)
    t = core(2)
    t.units.ctas[1].barriers.exit()
    with fails("tcgen05-peer-exited", "CTA 1"):
        t.core.mma(t.warps[0], 0, 2, t.o)


def test_commit_to_no_barrier(fails):
    t = core()
    with fails("mbarrier-uninitialised", "tcgen05.commit"):
        t.core.commit(t.warps[0], 0, 1, 0)


# --- cp -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, rows, nbytes, lanes",
    [
        ("128x256b", 128, 32, lambda r: [r]),
        ("128x128b", 128, 16, lambda r: [r]),
        ("64x128b.warpx2::02_13", 64, 16, lambda r: [r, r + 64]),
        ("64x128b.warpx2::01_23", 64, 16, lambda r: [r % 32 + 64 * (r // 32), r % 32 + 64 * (r // 32) + 32]),
        ("32x128b.warpx4", 32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
        ("4x256b", 4, 32, lambda r: [32 * r]),
    ],
)
@pytest.mark.parametrize("ctas", [1, 2])
def test_cp(shape, rows, nbytes, lanes, ctas):
    t = TensorCore(ctas)
    desc = MatrixDescriptor("sm_100", SF_AT, 8192 // 8, 128, Swizzle.NONE)
    # Core matrices of 8 rows x 16 bytes: SBO between groups of 8 rows, LBO between 16-byte columns.
    data = RNG.integers(0, 256, (ctas, rows, nbytes)).astype(np.uint8)
    for rank in range(ctas):
        for r in range(rows):
            for c in range(nbytes // 16):
                at = SF_AT + r % 8 * 16 + r // 8 * 128 + c * 1024
                t.smem(rank)[at : at + 16] = data[rank, r, 16 * c : 16 * c + 16]
    if nbytes == 32 and rows == 128:  # the second column group starts after 16 groups of rows
        desc = dataclasses.replace(desc, lbo=2048)
        for rank in range(ctas):
            for r in range(rows):
                for c in range(2):
                    at = SF_AT + r % 8 * 16 + r // 8 * 128 + c * 2048
                    t.smem(rank)[at : at + 16] = data[rank, r, 16 * c : 16 * c + 16]
    t.core.cp(t.warps[0], 0, ctas, shape, SFA, desc.encode())
    t.agenda.drain()
    for rank in range(ctas):
        for r in range(rows):
            for lane in lanes(r):
                got = t.tmem[rank].data[lane, SFA : SFA + nbytes // 4]
                assert (got.view(np.uint8) == data[rank, r]).all()
        written = {lane for r in range(rows) for lane in lanes(r)}
        assert set(np.flatnonzero(t.tmem[rank].init[:, SFA])) == written


def test_cp_decompresses():
    t = TensorCore()
    desc = MatrixDescriptor("sm_100", SF_AT, 0, 128, Swizzle.NONE)
    codes = RNG.integers(0, 16, (32, 16)).astype(np.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    for r in range(32):
        at = SF_AT + r % 8 * 16 + r // 8 * 128
        t.smem()[at : at + 8] = packed[r]
    t.core.cp(t.warps[0], 0, 1, "32x128b.warpx4", SFA, desc.encode(), "b8x16.b4x16_p64")
    t.agenda.drain()
    assert (t.tmem[0].data[:32, SFA : SFA + 4].view(np.uint8) == codes << 2).all()


def test_refused():
    t = TensorCore()
    with pytest.raises(EmulatorError, match="not modelled"):
        t.core.shift()
    desc = MatrixDescriptor("sm_100", SF_AT, 0, 128, Swizzle.NONE).encode()
    with pytest.raises(EmulatorError, match="lane 0"):
        t.core.cp(t.warps[0], 0, 1, "128x128b", 32 << 16, desc)
    with pytest.raises(EmulatorError, match="format"):
        t.core.cp(t.warps[0], 0, 1, "128x128b", 0, desc, "b8x16")


def test_strict_order_lets_scale_copies_overtake():
    """mma then cp of the same thread: in order by default, in any order when only promises count."""
    for strict, expected in ((False, {"mma"}), (True, {"mma", "cp"})):
        first = set()
        for seed in range(20):
            t = core(seed=seed, strict=strict)
            events = []
            t.monitor.listeners.append(type("L", (), {"on_event": lambda s, *a, e=events: e.append(a[0])})())
            t.core.mma(t.warps[0], 0, 1, t.o)
            desc = MatrixDescriptor("sm_100", SF_AT, 0, 128, Swizzle.NONE).encode()
            t.core.cp(t.warps[0], 0, 1, "32x128b.warpx4", SFA, desc)
            t.agenda.drain()
            first.add(events[0])
        assert first == expected
