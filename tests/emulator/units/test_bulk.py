"""Bulk copies, cp.async and their groups."""

import numpy as np
import pytest

from kgen.emulator.bulk import BulkUnit
from kgen.emulator.cp_async import CpAsyncUnit
from kgen.emulator.reductions import reduce
from kgen.errors import EmulatorError
from units.conftest import Bench, Global

LANES = np.arange(32)
SRC = Global.base


def bench(ctas=1, seed=0, init=False):
    b = Bench(ctas, seed, init)
    b.bulk, b.cp = BulkUnit(b.units), CpAsyncUnit(b.units)
    return b


def test_load_and_multicast():
    b = bench(4)
    bars = [b.barrier(8, rank=r) for r in range(4)]
    for bar in bars:
        bar.arrive_expect_tx(256)
    b.bulk.load(b.warps[0], b.at(1, 0x100), SRC + 32, 256, b.at(1, 8))
    b.bulk.load(b.warps[0], b.at(0, 0x100), SRC, 256, b.at(0, 8), mask=0b1100)
    b.agenda.drain()
    assert [bar.phase for bar in bars] == [0, 1, 1, 1]
    assert (b.smem(1)[0x100:0x200] == b.memory.bytes[32:288]).all()
    assert (b.smem(3)[0x100:0x200] == b.memory.bytes[:256]).all()


def test_nothing_may_be_copied():
    b = bench()
    bar = b.barrier(8)
    bar.arrive_expect_tx(0)
    b.bulk.load(b.warps[0], 0x100, SRC, 0, 8)
    b.bulk.store(b.warps[0], 0, SRC, 0x100, 0)
    b.agenda.drain()
    assert bar.phase == 1


def test_alignment_and_places(fails):
    b = bench(2, init=True)
    b.barrier(8)
    for args in ((0x100, SRC + 8, 16), (0x108, SRC, 16), (0x100, SRC, 24)):
        with fails("bulk-alignment"):
            b.bulk.load(b.warps[0], *args, 8)
    with fails("tma-barrier-cta"):
        b.bulk.load(b.warps[0], b.at(1, 0x100), SRC, 16, b.at(0, 8))
    with fails("bulk-destination-cta"):
        b.bulk.shared_copy(b.warps[0], b.at(0, 0x100), b.at(0, 0x200), 16, b.at(0, 8))
    with fails("tma-barrier-cta"):
        b.bulk.shared_copy(b.warps[0], b.at(1, 0x100), b.at(0, 0x200), 16, b.at(0, 8))


def test_shared_to_remote_shared(fails):
    b = bench(2, init=True)
    warp = b.warps[0]
    bar = b.barrier(8, rank=1)
    bar.arrive_expect_tx(64)
    b.smem(0)[0x200:0x240] = 5
    b.bulk.shared_copy(warp, b.at(1, 0x100), b.at(0, 0x200), 64, b.at(1, 8))
    with fails("smem-overwritten-in-flight"):
        b.units.ctas[0].hazards.generic_write(warp, 0x200 + 4 * LANES[:4], 4, "st.shared", LANES[:4])
    b.agenda.drain()
    assert bar.phase == 1 and (b.smem(1)[0x100:0x140] == 5).all()


def test_reduction_into_remote_shared():
    b = bench(2, init=True)
    b.barrier(8, rank=1)
    b.smem(0)[0x200:0x210].view(np.uint32)[:] = [1, 2, 3, 4]
    b.smem(1)[0x100:0x110].view(np.uint32)[:] = 10
    b.bulk.shared_copy(b.warps[0], b.at(1, 0x100), b.at(0, 0x200), 16, b.at(1, 8), op="add", kind="u32")
    b.agenda.drain()
    assert b.smem(1)[0x100:0x110].view(np.uint32).tolist() == [11, 12, 13, 14]


def test_store_with_byte_mask_and_reduction():
    b = bench(init=True)
    warp, before = b.warps[0], b.memory.bytes.copy()
    b.smem()[0x200:0x220] = 9
    b.bulk.store(warp, 0, SRC + 16, 0x200, 32, cp_mask=0b101)
    b.agenda.drain()
    changed = np.flatnonzero(b.memory.bytes != before)
    assert set(changed) <= {16, 18, 32, 34} and (b.memory.bytes[[16, 18, 32, 34]] == 9).all()
    b.memory.bytes[:16].view(np.float32)[:] = 1.5
    b.smem()[0x200:0x210].view(np.float32)[:] = [1, 2, 3, 4]
    b.bulk.store(warp, 0, SRC, 0x200, 16, op="add", kind="f32")
    b.agenda.drain()
    assert b.memory.bytes[:16].view(np.float32).tolist() == [2.5, 3.5, 4.5, 5.5]


def test_groups_belong_to_threads():
    b = bench(init=True)
    for lane in (0, 1):
        b.bulk.store(b.warps[0], lane, SRC + 16 * lane, 0x200, 16)
        b.bulk.commit(b.warps[0], lane)
    b.bulk.wait(b.warps[0], 1, 0)
    assert len(b.agenda.actions) == 2  # those of lane 0
    b.bulk.commit(b.warps[0], 0)  # an empty group counts
    b.bulk.wait(b.warps[0], 0, 2)
    assert len(b.agenda.actions) == 2
    b.bulk.wait(b.warps[0], 0, 1)
    assert b.agenda.idle


@pytest.mark.parametrize(
    "op, kind, old, new, result",
    [
        ("inc", "u32", [3, 7, 8], [7, 7, 7], [4, 0, 0]),
        ("dec", "u32", [3, 0, 9], [7, 7, 7], [2, 7, 7]),
        ("add", "s32", [1, -5, 2**31 - 1], [1, 3, 1], [2, -2, -(2**31)]),
        ("and", "b32", [6, 5, 4], [3, 3, 3], [2, 1, 0]),
    ],
)
def test_reduction_operations(op, kind, old, new, result):
    dtype = np.int32 if kind == "s32" else np.uint32
    a, b = (np.array(v, dtype).view(np.uint8) for v in (old, new))
    assert reduce(op, kind, a, b).view(dtype).tolist() == result


def test_floating_reductions():
    a, b = np.array([1e-40, 1.0], np.float32), np.array([1e-40, 2.0**-24], np.float32)
    assert reduce("add", "f32", a.view(np.uint8), b.view(np.uint8)).view(np.float32).tolist() == [0.0, 1.0]
    h = np.array([np.nan, 1.0], np.float16), np.array([2.0, np.nan], np.float16)
    assert reduce("max", "f16", *(x.view(np.uint8) for x in h)).view(np.float16).tolist() == [2.0, 1.0]
    with pytest.raises(EmulatorError, match="does not exist"):
        reduce("add", "s64", a.view(np.uint8), b.view(np.uint8))


# --- cp.async -------------------------------------------------------------------------------------------


def test_cp_async_lands_at_the_wait(fails):
    b = bench()
    warp, hazards = b.warps[0], b.units.ctas[0].hazards
    b.cp.copy(warp, LANES, 0x400 + 16 * LANES, SRC + 16 * LANES, 16, 16)
    b.cp.commit(warp, LANES)
    b.cp.copy(warp, LANES, 0x800 + 4 * LANES, SRC + 4 * LANES, 4, 4)
    b.cp.commit(warp, LANES)
    with fails("smem-read-in-flight", "cp.async of 16 bytes by warp 0"):
        hazards.generic_read(warp, np.array([0x410]), 4, "ld.shared")
    b.cp.wait(warp, LANES, 1)
    hazards.generic_read(warp, 0x400 + 16 * LANES, 16, "ld.shared")
    assert (b.smem()[0x400:0x600] == b.memory.bytes[:512]).all()
    with fails("smem-read-in-flight", "cp.async of 4"):
        hazards.generic_read(warp, np.array([0x800]), 4, "ld.shared")
    b.cp.wait_all(warp, LANES)
    assert (b.smem()[0x800:0x880] == b.memory.bytes[:128]).all()


def test_cp_async_zero_fill():
    b = bench()
    b.smem()[:] = 1
    sizes = np.where(LANES == 0, 5, np.where(LANES < 4, 0, 8))
    b.cp.copy(b.warps[0], LANES, 0x400 + 8 * LANES, SRC + 8 * LANES, 8, sizes)
    b.cp.wait_all(b.warps[0], LANES)
    expected = b.memory.bytes[:256].copy()
    expected[5:32] = 0
    assert (b.smem()[0x400:0x500] == expected).all()


def test_cp_async_arrives_when_done():
    b = bench()
    warp = b.warps[0]
    plain, counted = b.barrier(0, 1), b.barrier(8, 32)
    b.cp.copy(warp, LANES, 0x400 + 4 * LANES, SRC + 4 * LANES, 4, 4)
    b.cp.arrive(warp, LANES, 0)
    b.cp.arrive(warp, LANES, 8, noinc=True)
    assert plain.pending == 33 and counted.pending == 32
    b.agenda.drain()
    assert plain.pending == 1 and counted.phase == 1


def test_cp_async_misaligned(fails):
    b = bench()
    with fails("cp-async-alignment"):
        b.cp.copy(b.warps[0], LANES, 0x404 + 16 * LANES, SRC + 16 * LANES, 16, 16)


def test_what_a_warp_leaves_pending_is_completed_at_its_end():
    b = bench()
    b.cp.copy(b.warps[0], LANES, 0x400 + 4 * LANES, SRC + 4 * LANES, 4, 4)
    b.cp.commit(b.warps[0], LANES)
    b.cp.copy(b.warps[0], LANES, 0x800 + 4 * LANES, SRC + 4 * LANES, 4, 4)
    b.cp.exit(b.warps[0])
    assert b.agenda.idle
    b.units.ctas[0].exit()
