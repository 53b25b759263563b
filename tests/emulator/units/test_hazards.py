"""Races on shared memory: each mistake by name, and silence for the pipelines that are right."""

import numpy as np
import pytest

from kgen.emulator.hazards import SharedHazards, span
from kgen.emulator.mbarrier import BarrierTable
from kgen.emulator.order import Meeting
from units.conftest import Shared

LANES = np.arange(32)
ROW = 0x400 + 4 * LANES  # 128 bytes, one word per lane
TILE = span(0x400, 128)


@pytest.fixture
def table(monitor, order):
    return BarrierTable(Shared(), monitor, order)


@pytest.fixture
def smem(table, monitor):
    return SharedHazards(table.shared, monitor, table)


def sync(*actors):
    meeting = Meeting()
    for actor in actors:
        meeting.arrive(actor)
    meeting.complete()
    for actor in actors:
        meeting.leave(actor)


# --- generic to async -----------------------------------------------------------------------------------


def test_write_fence_barrier_read(smem, order):
    writer, issuer = order.actor("warp 0"), order.actor("warp 1")
    smem.generic_write(writer, ROW, 4, "st.shared")
    writer.fence_async()
    sync(writer, issuer)
    smem.end(smem.begin_read(TILE, issuer.known, "TMA store"))


def test_the_writer_may_issue_after_its_own_fence(smem, order):
    warp = order.actor("warp 0")
    smem.generic_write(warp, ROW, 4, "st.shared")
    warp.fence_async()
    smem.begin_read(TILE, warp.known, "TMA store")


def test_no_fence(smem, order, fails):
    writer, issuer = order.actor("warp 0"), order.actor("warp 1")
    smem.generic_write(writer, ROW, 4, "st.shared")
    sync(writer, issuer)
    with fails("async-read-unfenced", "TMA store reads shared 0x400", "128 bytes in all"):
        smem.begin_read(TILE, issuer.known, "TMA store")


def test_fence_by_one_lane_only(smem, order, fails):
    warp = order.actor("warp 0")
    smem.generic_write(warp, ROW, 4, "st.shared")
    warp.fence_async(LANES == 0)
    with fails("async-read-unfenced", "0x404", "124 bytes"):
        smem.begin_read(TILE, warp.known, "TMA store")


def test_fence_by_the_issuer_instead_of_the_writer(smem, order, fails):
    writer, issuer = order.actor("warp 0"), order.actor("warp 1")
    smem.generic_write(writer, ROW, 4, "st.shared")
    sync(writer, issuer)
    issuer.fence_async()
    with fails("async-read-unfenced"):
        smem.begin_read(TILE, issuer.known, "wgmma")


def test_fence_after_the_barrier(smem, order, fails):
    writer, issuer = order.actor("warp 0"), order.actor("warp 1")
    smem.generic_write(writer, ROW, 4, "st.shared")
    sync(writer, issuer)
    writer.fence_async()
    with fails("async-read-unfenced"):
        smem.begin_read(TILE, issuer.known, "wgmma")


def test_write_after_the_fence(smem, order, fails):
    warp = order.actor("warp 0")
    smem.generic_write(warp, ROW, 4, "st.shared")
    warp.fence_async()
    smem.generic_write(warp, ROW[:1], 4, "st.shared", lanes=[0])
    with fails("async-read-unfenced", "4 bytes"):
        smem.begin_read(TILE, warp.known, "wgmma")


def test_lanes_of_a_partial_store(smem, order):
    warp = order.actor("warp 0")
    smem.shared.init[:] = True
    smem.generic_write(warp, ROW[8:], 4, "st.shared", lanes=LANES[8:])
    warp.fence_async(LANES >= 8)
    smem.begin_read(TILE, warp.known, "wgmma")


def test_async_write_over_unfenced_bytes_warns(smem, order, monitor):
    warp = order.actor("warp 0")
    smem.generic_write(warp, ROW, 4, "st.shared")
    smem.begin_write(TILE, warp.known, "TMA load")
    assert [w.check for w in monitor.warnings] == ["async-write-unfenced"]


# --- async to generic -----------------------------------------------------------------------------------


def load(smem, barrier, actor, words=TILE):
    barrier.arrive_expect_tx(128, actor)
    return smem.begin_write(words, actor.known, "TMA load of A")


def land(smem, barrier, flight):
    smem.landed(flight, barrier.fact, barrier.phase, barrier.name)
    barrier.complete_tx(128)


def test_a_full_empty_ring_is_silent(smem, table, order, monitor):
    """TMA fills, two warps read, release, TMA fills again: ten rounds, two stages."""
    producer, readers = order.actor("producer"), [order.actor(f"warp {i}") for i in (1, 2)]
    full = [table.init(8 * s, 1) for s in range(2)]
    empty = [table.init(16 + 8 * s, 2) for s in range(2)]
    for i in range(20):
        s, lap = i % 2, i // 2
        assert empty[s].test(lap & 1 ^ 1, producer)
        words = span(0x400 + 128 * s, 128)
        flight = load(smem, full[s], producer, words)
        land(smem, full[s], flight)
        for r in readers:
            assert full[s].test(lap & 1, r)
            smem.generic_read(r, ROW + 128 * s, 4, "ld.shared")
            reads = smem.begin_read(words, r.known, "wgmma")
            smem.end(reads)
            empty[s].arrive(actor=r)
    assert not monitor.warnings and not smem.in_flight


def test_reading_what_is_being_loaded(smem, table, order, fails):
    warp = order.actor("warp 0")
    load(smem, table.init(0, 1), warp)
    with fails("smem-read-in-flight", "ld.shared by warp 0 reads shared 0x400", "TMA load of A"):
        smem.generic_read(warp, ROW, 4, "ld.shared")
    with fails("smem-read-in-flight", "wgmma reads"):
        smem.begin_read(TILE, warp.known, "wgmma")


def test_reading_what_has_landed_without_waiting(smem, table, order, fails):
    producer, warp = order.actor("producer"), order.actor("warp 0")
    full = table.init(0, 1)
    land(smem, full, load(smem, full, producer))
    with fails("smem-read-unobserved", "mbarrier at shared 0x0 of CTA 0 phase 0"):
        smem.generic_read(warp, ROW, 4, "ld.shared")
    assert full.test(0, warp)
    smem.generic_read(warp, ROW, 4, "ld.shared")
    # Another warp learns it from the one that waited.
    other = order.actor("warp 1")
    sync(warp, other)
    smem.generic_read(other, ROW, 4, "ld.shared")


def test_waiting_for_the_phase_before(smem, table, order, fails):
    """A consumer whose parity is off by one lap passes at once, and reads the tile that is not there."""
    producer, warp = order.actor("producer"), order.actor("warp 0")
    full = table.init(0, 1)
    land(smem, full, load(smem, full, producer))
    assert full.test(0, warp)
    land(smem, full, load(smem, full, producer))
    assert not full.test(0, warp)
    with fails("smem-read-unobserved", "phase 1"):
        smem.generic_read(warp, ROW, 4, "ld.shared")


def test_overwriting_what_is_still_read(smem, order, fails):
    smem.shared.init[:] = True
    warp = order.actor("warp 0")
    flight = smem.begin_read(TILE, warp.known, "wgmma m64n128k16 A")
    with fails("smem-overwritten-in-flight", "TMA load overwrites shared 0x400", "wgmma m64n128k16 A"):
        smem.begin_write(TILE, warp.known, "TMA load")
    with fails("smem-overwritten-in-flight", "st.shared by warp 0"):
        smem.generic_write(warp, ROW, 4, "st.shared")
    smem.end(flight)
    smem.generic_write(warp, ROW, 4, "st.shared")


def test_two_readers_of_the_same_bytes(smem, order, fails):
    smem.shared.init[:] = True
    warp = order.actor("warp 0")
    first, second = (smem.begin_read(TILE, warp.known, f"wgmma {i}") for i in range(2))
    smem.end(first)
    with fails("smem-overwritten-in-flight", "wgmma 1"):
        smem.begin_write(TILE, warp.known, "TMA load")
    smem.end(second)
    smem.begin_write(TILE, warp.known, "TMA load")


def test_overwriting_what_was_read_without_knowing_so(smem, order, fails):
    """The MMA happens to be over, but the producer did not wait for its commit."""
    smem.shared.init[:] = True
    warp, producer = order.actor("warp 0"), order.actor("producer")
    finished = order.facts(1)
    smem.end(smem.begin_read(TILE, warp.known, "tcgen05.mma", fact=finished, value=0))
    with fails("smem-overwritten-unobserved"):
        smem.begin_write(TILE, producer.known, "TMA load")
    producer.known.learn(finished, 1)
    smem.begin_write(TILE, producer.known, "TMA load")


def test_two_loads_into_one_place(smem, table, order, fails):
    warp = order.actor("warp 0")
    load(smem, table.init(0, 1), warp)
    with fails("smem-write-in-flight"):
        smem.begin_write(span(0x440, 16), warp.known, "TMA load of B")


def test_generic_write_into_a_load(smem, table, order, fails):
    warp = order.actor("warp 0")
    load(smem, table.init(0, 1), warp)
    with fails("smem-write-in-flight"):
        smem.generic_write(warp, ROW[:4], 4, "st.shared", lanes=[0, 1, 2, 3])


# --- the rest -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_uninitialised(smem, order, fails, size):
    warp = order.actor("warp 0")
    starts = 0x400 + size * LANES
    smem.generic_write(warp, starts[:-1], size, "st.shared", lanes=LANES[:-1])
    smem.generic_read(warp, starts[:-1], size, "ld.shared")
    with fails("uninitialised-shared", f"{0x400 + 31 * size:#x}", f"{size} bytes"):
        smem.generic_read(warp, starts, size, "ld.shared")


def test_uninitialised_operand(smem, order, fails):
    warp = order.actor("warp 0")
    with fails("uninitialised-shared", "wgmma B reads shared 0x400", "128 bytes"):
        smem.begin_read(TILE, warp.known, "wgmma B")


def test_writes_over_a_barrier(smem, table, order, fails):
    warp = order.actor("warp 0")
    table.init(0x408, 1)
    with fails("mbarrier-overwritten"):
        smem.generic_write(warp, ROW, 4, "st.shared")
    with fails("mbarrier-overwritten", "TMA load"):
        smem.begin_write(TILE, warp.known, "TMA load")


def test_out_of_window(smem, order, fails):
    with fails("smem-out-of-window"):
        smem.begin_read(span((1 << 16) - 16, 32), order.actor("w").known, "wgmma")


def test_cp_async_is_a_generic_write(smem, order, fails):
    warp = order.actor("warp 0")
    flight = smem.begin_write(TILE, warp.known, "cp.async", generic=True)
    with fails("smem-read-in-flight"):
        smem.generic_read(warp, ROW, 4, "ld.shared")
    smem.landed_generic(flight, warp, 3)
    smem.generic_read(warp, ROW, 4, "ld.shared")
    with fails("async-read-unfenced"):
        smem.begin_read(TILE, warp.known, "wgmma")
    warp.fence_async()
    smem.begin_read(TILE, warp.known, "wgmma")
