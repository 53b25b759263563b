"""Tensor memory: allocation, loads and stores, and their order."""

import numpy as np
import pytest

from kgen.emulator.tcgen05_io import TmemAccess
from kgen.emulator.tensor_memory import TensorMemory
from units.test_hazards import sync


@pytest.fixture
def tmem(monitor, order):
    return TensorMemory(monitor, order)


@pytest.fixture
def io(tmem):
    tmem.alloc("CTA 0", 512)
    return TmemAccess(tmem)


# --- allocation -----------------------------------------------------------------------------------------


def test_columns_are_given_and_taken_back(tmem):
    assert tmem.alloc("CTA 0", 256) == 0
    assert tmem.alloc("CTA 0", 128) == 256
    assert tmem.alloc("CTA 1", 256) is None  # must wait for CTA 0
    tmem.dealloc("CTA 0", 0, 256)
    assert tmem.alloc("CTA 1", 256) == 0
    tmem.exit("CTA 2")


@pytest.mark.parametrize("count", [16, 48, 1024, 0])
def test_sizes(tmem, fails, count):
    with fails("tmem-alloc", "power of two"):
        tmem.alloc("CTA 0", count)


def test_growing(tmem, fails):
    tmem.alloc("CTA 0", 32)
    with fails("tmem-alloc", "must not grow"):
        tmem.alloc("CTA 0", 64)


def test_after_relinquish(tmem, fails):
    tmem.relinquish("CTA 0")
    with fails("tmem-alloc", "relinquish"):
        tmem.alloc("CTA 0", 32)


def test_an_allocation_that_can_never_succeed(tmem, fails):
    tmem.alloc("CTA 0", 512)
    with fails("tmem-alloc", "never succeed"):
        tmem.alloc("CTA 0", 32)


def test_dealloc_of_something_else(tmem, fails):
    tmem.alloc("CTA 0", 64)
    for address, count in ((0, 32), (32, 64)):
        with fails("tmem-dealloc", "holds 64 columns at 0x0"):
            tmem.dealloc("CTA 0", address, count)
    with fails("tmem-dealloc", "holds nothing"):
        tmem.dealloc("CTA 1", 0, 64)


def test_leak(tmem, fails):
    tmem.alloc("CTA 0", 64)
    with fails("tmem-leak", "64 columns at 0x0"):
        tmem.exit("CTA 0")
    assert tmem.alloc("CTA 1", 512) == 0


# --- loads and stores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, num", [("32x32b", 8), ("16x64b", 4), ("16x128b", 2), ("16x256b", 2), ("16x32bx2", 4)])
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_stored_can_be_loaded(io, order, shape, num, packed):
    warp, got = order.actor("warp 5"), []
    split = {"half_split": 64} if shape == "16x32bx2" else {}
    registers = num * {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    values = np.random.default_rng(3).integers(0, 1 << 32, (32, registers), np.uint32)
    at = 32 << 16 | 96
    io.st(warp, 5, shape, num, at, values, unpack16=packed, **split)
    assert not io.memory.init.any()
    io.wait_st(warp)
    io.ld(warp, 5, shape, num, at, got.append, pack16=packed, **split)
    assert not got and io.pending_ld(warp)
    io.wait_ld(warp)
    assert (got[0] == values).all() and not io.pending_ld(warp)


def test_the_data_of_a_load_is_as_late_as_its_wait(io, order):
    warp, got = order.actor("warp 0"), []
    io.memory.init[:] = True
    io.ld(warp, 0, "32x32b", 1, 0, got.append)
    io.memory.data[:] = 7
    io.wait_ld(warp)
    assert (got[0] == 7).all()


def test_lanes(io, order, fails):
    warp = order.actor("warp 1")
    with fails("tmem-lane-window", "lane 0, warp 1 may name 32"):
        io.ld(warp, 1, "32x32b", 1, 0, None)
    with fails("tmem-lane-window", "32 or 48"):
        io.st(warp, 1, "16x64b", 1, 64 << 16, np.zeros((32, 1)))


def test_outside_the_allocation(monitor, order, fails):
    memory = TensorMemory(monitor, order)
    memory.alloc("CTA 0", 64)
    io, warp = TmemAccess(memory), order.actor("warp 0")
    with fails("tmem-out-of-allocation", "columns 64 to 67", "allocated columns: 0..63"):
        io.ld(warp, 0, "32x32b", 8, 60, None)
    with fails("tmem-out-of-allocation", "column 515"):
        io.ld(warp, 0, "32x32b", 8, 508, None)


def test_uninitialised(io, order, fails):
    warp = order.actor("warp 0")
    io.ld(warp, 0, "32x32b", 1, 3, lambda v: None)
    with fails("uninitialised-tmem", "lane 0, column 3", "32 words"):
        io.wait_ld(warp)


def test_load_of_a_store_without_wait(io, order, fails):
    warp = order.actor("warp 0")
    io.st(warp, 0, "32x32b", 1, 0, np.zeros((32, 1)))
    with fails("tmem-missing-wait-st"):
        io.ld(warp, 0, "32x32b", 1, 0, None)


def test_store_over_a_load_without_wait(io, order, fails):
    warp = order.actor("warp 0")
    io.memory.init[:] = True
    io.ld(warp, 0, "32x32b", 1, 0, None)
    with fails("tmem-missing-wait-ld", "without tcgen05.wait::ld"):
        io.st(warp, 0, "32x32b", 1, 0, np.zeros((32, 1)))


def test_hand_over_between_warps(io, order, monitor, fails):
    """Warps 0 and 4 share a quarter: st, wait, fence, sync, fence, ld; then each step left out."""
    one, two = order.actor("warp 0"), order.actor("warp 4")

    def round_trip(wait=True, before=True, meet=True, after=True):
        io.st(one, 0, "32x32b", 1, 0, np.zeros((32, 1)))
        if wait:
            io.wait_st(one)
        if before:
            one.fence_before()
        if meet:
            sync(one, two)
        if after:
            two.fence_after()
        io.ld(two, 4, "32x32b", 1, 0, lambda v: None)
        io.wait_ld(two)
        two.fence_before()
        sync(one, two)
        one.fence_after()

    round_trip()
    round_trip()
    assert not monitor.warnings
    round_trip(after=False)
    assert [w.check for w in monitor.warnings] == ["tmem-missing-fence-after"]
    round_trip(before=False)
    assert [w.check for w in monitor.warnings][1:] == ["tmem-missing-fence-before"]
    with fails("tmem-missing-wait-st", "synchronisation"):
        round_trip(meet=False)


def test_one_lane_arrives_for_loads_of_its_warp(io, order, fails):
    """ld, wait, fence, (__syncwarp,) lane 0 arrives; the warp that overwrites has waited for that."""
    one, two = order.actor("warp 0"), order.actor("warp 4")

    def hand_over(converge=(True, True)):
        io.st(one, 0, "32x32b", 1, 0, np.zeros((32, 1)))
        io.wait_st(one)
        io.ld(one, 0, "32x32b", 1, 0, lambda v: None)
        io.wait_ld(one)
        if converge[0]:
            one.converge()
        one.fence_before()
        if converge[1]:
            one.converge()
        two.acquire(one.tick(0).copy())
        two.fence_after()
        io.st(two, 4, "32x32b", 1, 0, np.zeros((32, 1)))
        io.wait_st(two)
        two.fence_before()
        one.acquire(two.release())
        one.fence_after()

    hand_over()
    hand_over((False, True))
    for missing in ((True, False), (False, False)):
        with fails("warp-sync-missing", "one lane arrived"):
            hand_over(missing)
        one.converge()
        two.acquire(one.release())
        one.acquire(two.release())


def test_dealloc_in_use(tmem, order, fails):
    tmem.alloc("CTA 0", 64)
    io, warp, other = TmemAccess(tmem), order.actor("warp 0"), order.actor("warp 1")
    io.st(warp, 0, "32x32b", 1, 0, np.zeros((32, 1)))
    io.wait_st(warp)
    with fails("tmem-dealloc-in-use", "a tcgen05.st of warp 0"):
        tmem.dealloc("CTA 0", 0, 64, other)
    sync(warp, other)
    tmem.dealloc("CTA 0", 0, 64, other)


def test_exit_without_waits(io, order, fails):
    warp = order.actor("warp 0")
    io.st(warp, 0, "32x32b", 1, 0, np.zeros((32, 1)))
    with fails("tmem-missing-wait-st", "exits"):
        io.exit(warp)
    io.exit(warp)
