"""Tensor copies: data, byte counts, signalling, and their mistakes."""

import numpy as np
import pytest

from kgen.emulator.bulk import BulkUnit
from kgen.emulator.swizzle import Swizzle, swizzle
from kgen.emulator.tensormap import DataType, encode_tiled
from kgen.emulator.tma import TmaUnit
from units.conftest import Bench, Global


def matrix_map(rows=64, cols=96, box=(64, 16), swizzle_code=3, dtype=DataType.FLOAT16, **kw):
    size = dtype.bits // 8
    strides = (cols * size,)
    return encode_tiled(dtype, Global.base, (cols, rows), strides, box, (1, 1), 0, swizzle_code, 0, 0, **kw)


def bench(ctas=1, seed=0):
    b = Bench(ctas, seed)
    b.bulk = BulkUnit(b.units)
    b.tma = TmaUnit(b.units, b.bulk)
    return b


def expected_tile(b, row, col, rows=64, cols=96, box=(64, 16)):
    whole = b.memory.bytes[: rows * cols * 2].view(np.uint16).reshape(rows, cols)
    tile = np.zeros((box[1], box[0]), np.uint16)
    part = whole[max(row, 0) : row + box[1], max(col, 0) : col + box[0]]
    r, c = max(-row, 0), max(-col, 0)
    tile[r : r + part.shape[0], c : c + part.shape[1]] = part
    return tile


def tile_in(b, offset, box=(64, 16), mode=Swizzle.B128, rank=0):
    at = offset + 2 * np.arange(box[0] * box[1], dtype=np.int64)
    return b.smem(rank).view(np.uint16)[swizzle(at, mode) // 2].reshape(box[1], box[0])


@pytest.mark.parametrize("row, col", [(0, 0), (8, 32), (56, 64), (-4, 0), (60, -8), (64, 96)])
def test_load_places_the_box_and_counts_all_its_bytes(row, col):
    b = bench()
    full, warp = b.barrier(), b.warps[0]
    full.arrive_expect_tx(64 * 16 * 2, warp)
    b.tma.load(warp, matrix_map(), (col, row), 0x400, 0)
    assert not full.test(0, warp)
    assert b.agenda.step()
    assert full.test(0, warp) and b.agenda.idle
    assert (tile_in(b, 0x400) == expected_tile(b, row, col)).all()
    assert b.units.ctas[0].shared.init[0x400 : 0x400 + 2048].all()


@pytest.mark.parametrize("code, mode", [(0, Swizzle.NONE), (3, Swizzle.B128), (5, Swizzle.B128_ATOM_32B_FLIP_8B)])
def test_swizzles_agree_with_the_closed_form(code, mode):
    b = bench()
    b.barrier().arrive_expect_tx(2048)
    b.tma.load(b.warps[0], matrix_map(swizzle_code=code), (16, 8), 0x800, 0)
    b.agenda.drain()
    assert (tile_in(b, 0x800, mode=mode) == expected_tile(b, 8, 16)).all()


def test_rows_that_end_within_sixteen_bytes_fall_back_to_elements():
    b = bench()
    b.barrier().arrive_expect_tx(2048)
    m = encode_tiled(DataType.FLOAT16, Global.base, (93, 64), (192,), (64, 16), (1, 1), 0, 3, 0, 0)
    b.tma.load(b.warps[0], m, (64, 0), 0x400, 0)
    b.agenda.drain()
    tile = expected_tile(b, 0, 64)
    tile[:, 29:] = 0
    assert (tile_in(b, 0x400) == tile).all()


def test_reading_before_the_wait_is_caught_in_flight_and_after(fails):
    b = bench()
    full, warp = b.barrier(), b.warps[0]
    full.arrive_expect_tx(2048, warp)
    b.tma.load(warp, matrix_map(), (0, 0), 0x400, 0, name="A")
    hazards = b.units.ctas[0].hazards
    with fails("smem-read-in-flight", "TMA load of A at .0, 0."):
        hazards.generic_read(warp, np.array([0x400]), 16, "ld.shared")
    b.agenda.drain()
    with fails("smem-read-unobserved", "phase 0"):
        hazards.generic_read(warp, np.array([0x400]), 16, "ld.shared")
    assert full.test(0, warp)
    hazards.generic_read(warp, np.array([0x400]), 16, "ld.shared")


def test_multicast_signals_every_destination_in_any_order():
    firsts = set()
    for seed in range(12):
        b = bench(4, seed)
        bars = [b.barrier(0x40, rank=r) for r in range(4)]
        for bar in bars:
            bar.arrive_expect_tx(2048)
        b.tma.load(b.warps[0], matrix_map(), (0, 0), b.at(0, 0x400), b.at(0, 0x40), mask=0b1011)
        b.agenda.step()
        firsts.add(next(r for r in range(4) if bars[r].phase))
        b.agenda.drain()
        assert [bar.phase for bar in bars] == [1, 1, 0, 1]
        for r in (0, 1, 3):
            assert (tile_in(b, 0x400, rank=r) == expected_tile(b, 0, 0)).all()
    assert firsts == {0, 1, 3}


def test_multicast_to_nobody(fails):
    b = bench(2)
    b.barrier()
    for mask in (0, 0b100):
        with fails("multicast-cta"):
            b.tma.load(b.warps[0], matrix_map(), (0, 0), 0x400, 0, mask=mask)


def test_pairs_may_signal_the_leader():
    b = bench(2)
    leader = b.barrier(0x40)
    leader.arrive_expect_tx(4096)
    for rank in range(2):
        b.tma.load(b.warps[rank], matrix_map(), (0, 16 * rank), b.at(rank, 0x400), b.at(0, 0x40), cta_group=2)
    b.agenda.drain()
    assert leader.phase == 1
    assert (tile_in(b, 0x400, rank=1) == expected_tile(b, 16, 0)).all()


def test_multicast_of_pairs_signals_the_own_pair_by_parity():
    b = bench(4)
    bars = [b.barrier(0x40, count=2, rank=r) for r in range(4)]
    b.tma.load(b.warps[0], matrix_map(), (0, 0), b.at(1, 0x400), b.at(0, 0x40), mask=0b1111, cta_group=2)
    b.agenda.drain()
    assert [bar.tx for bar in bars] == [-4096, 0, -4096, 0]


def test_a_barrier_in_another_cta_needs_cta_group_2(fails):
    b = bench(4)
    b.barrier(0x40)
    with fails("tma-barrier-cta", "CTA 0, the data in CTA 1"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), b.at(1, 0x400), b.at(0, 0x40))
    with fails("tma-barrier-cta"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), b.at(2, 0x400), b.at(0, 0x40), cta_group=2)


def test_destination_mistakes(fails):
    b = bench()
    b.barrier()
    with fails("tma-alignment"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), 0x410, 0)
    with fails("smem-out-of-window"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), 0x10000 - 0x400, 0)
    with fails("mbarrier-overwritten"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), 0, 0x40)
    b.tma.load(b.warps[0], matrix_map(), (0, 0), 0x480, 0)
    assert [w.check for w in b.monitor.warnings] == ["swizzle-phase"]


def test_no_barrier_there(fails):
    b = bench()
    with fails("mbarrier-uninitialised", "TMA load"):
        b.tma.load(b.warps[0], matrix_map(), (0, 0), 0x400, 0x40)


def test_gather4():
    b = bench()
    b.barrier().arrive_expect_tx(512)
    m = matrix_map(box=(64, 1))
    b.tma.load(b.warps[0], m, (32, 5, 60, 0, 99), 0x400, 0, gather4=True)
    b.agenda.drain()
    tile = np.concatenate([expected_tile(b, r, 32, box=(64, 1)) for r in (5, 60, 0, 99)])
    assert (tile_in(b, 0x400, box=(64, 4)) == tile).all()


# --- stores ---------------------------------------------------------------------------------------------


def fill(b, warp, value=7):
    words = np.arange(32) * 16
    for at in range(0x400, 0x400 + 2048, 512):
        b.units.ctas[0].hazards.generic_write(warp, at + words, 16, "st.shared")
    b.smem()[0x400 : 0x400 + 2048] = value


def test_store_reads_as_late_as_the_wait_allows():
    b = bench()
    warp = b.warps[0]
    fill(b, warp)
    warp.fence_async()
    warp.converge()
    before = b.memory.bytes.copy()
    b.tma.store(warp, 0, matrix_map(), (32, 60), 0x400)
    b.bulk.commit(warp, 0)
    b.smem()[0x400 : 0x400 + 2048] = 9  # behind the tracker's back: what a racing store would do
    b.bulk.wait(warp, 0, 0, read=True)
    assert (b.memory.bytes == before).all()
    b.smem()[0x400 : 0x400 + 2048] = 1  # the source is free now
    b.bulk.wait(warp, 0, 0)
    whole = b.memory.bytes[: 64 * 96 * 2].reshape(64, 192)
    assert (whole[60:, 64:192] == 9).all()
    whole[60:, 64:192] = before[: 64 * 192].reshape(64, 192)[60:, 64:192]
    assert (b.memory.bytes == before).all()  # nothing else was written, the box was clipped


def test_store_without_fence(fails):
    b = bench()
    fill(b, b.warps[0])
    with fails("async-read-unfenced", "TMA store of D"):
        b.tma.store(b.warps[0], 0, matrix_map(), (0, 0), 0x400, name="D")


def test_one_lane_stores_what_the_others_wrote(fails):
    b = bench()
    warp = b.warps[0]
    fill(b, warp)
    warp.converge()
    warp.fence_async()
    with fails("warp-sync-missing", "issued by lane 0 of warp 0", "lane 1 wrote shared 0x410"):
        b.tma.store(warp, 0, matrix_map(), (0, 0), 0x400)


def test_one_lane_waits_for_a_box_that_the_others_overwrite(fails):
    b = bench()
    warp = b.warps[0]
    fill(b, warp)
    warp.fence_async()
    warp.converge()
    b.tma.store(warp, 0, matrix_map(), (0, 0), 0x400)
    b.bulk.commit(warp, 0)
    b.bulk.wait(warp, 0, 0, read=True)
    with fails("warp-sync-missing", "by lane 1 of warp 0 overwrites shared 0x410", "only lane 0 has waited for"):
        fill(b, warp)
    b.units.ctas[0].hazards.generic_write(warp, np.array([0x400]), 16, "st.shared", np.array([0]))
    warp.converge()
    fill(b, warp)


def test_reusing_the_source_before_and_after_the_wait(fails):
    b = bench()
    warp, other = b.warps[:2]
    fill(b, warp)
    warp.fence_async()
    warp.converge()
    b.tma.store(warp, 0, matrix_map(), (0, 0), 0x400)
    b.bulk.commit(warp, 0)
    with fails("smem-overwritten-in-flight"):
        fill(b, warp)
    b.agenda.drain()
    with fails("smem-overwritten-unobserved"):
        fill(b, other)
    b.bulk.wait(warp, 0, 0, read=True)
    with fails("smem-overwritten-unobserved"):
        fill(b, other)  # the other warp was not told
    other.acquire(warp.release())
    fill(b, other)


def test_wait_group_leaves_the_latest_groups():
    b = bench()
    warp = b.warps[0]
    b.units.ctas[0].shared.init[:] = True
    for i in range(3):
        b.tma.store(warp, 0, matrix_map(), (0, 16 * i), 0x400 + 0x800 * i)
        b.bulk.commit(warp, 0)
    b.bulk.wait(warp, 0, 1, read=True)
    assert [f.words[0] * 4 for f in b.units.ctas[0].hazards.in_flight] == [0x1400]
    assert len(b.agenda.actions) == 4  # three writes and a read
    b.bulk.wait(warp, 0, 1)
    assert len(b.agenda.actions) == 2


def test_exit_before_the_source_was_read(fails):
    b = bench()
    warp = b.warps[0]
    b.units.ctas[0].shared.init[:] = True
    b.tma.store(warp, 3, matrix_map(), (0, 0), 0x400)
    b.bulk.commit(warp, 3)
    b.agenda.drain()  # however early it happened to be read
    with fails("bulk-source-at-exit", "lane 3", "1 bulk store"):
        b.bulk.exit(warp)
    b.bulk.exit(b.warps[1])
    b.bulk.wait(warp, 3, 0, read=True)
    b.bulk.exit(warp)


@pytest.mark.parametrize(
    "dtype, op, np_dtype, compute",
    [
        (DataType.UINT32, "add", np.uint32, np.add),
        (DataType.INT32, "min", np.int32, np.minimum),
        (DataType.INT64, "max", np.int64, np.maximum),
        (DataType.UINT32, "xor", np.uint32, np.bitwise_xor),
        (DataType.FLOAT16, "add", np.float16, np.add),
    ],
)
def test_reductions(dtype, op, np_dtype, compute):
    b = bench()
    rng = np.random.default_rng(2)
    cols = 128 // np_dtype().itemsize
    old, new = (rng.integers(0, 100, (4, cols)).astype(np_dtype) for _ in range(2))
    b.memory.bytes[: old.nbytes] = old.reshape(-1).view(np.uint8)
    b.smem()[0x400 : 0x400 + new.nbytes] = new.reshape(-1).view(np.uint8)
    b.units.ctas[0].shared.init[:] = True
    b.tma.store(b.warps[0], 0, matrix_map(4, cols, (cols, 4), 0, dtype), (0, 0), 0x400, op=op)
    b.agenda.drain()
    assert (b.memory.bytes[: old.nbytes].view(np_dtype) == compute(old, new).reshape(-1)).all()
