"""Cluster launch control: every cluster runs exactly once, whatever try_cancel answers."""

import random

import numpy as np
import pytest

from kgen.emulator.clc import ClcUnit, LaunchPool
from kgen.emulator.monitor import Monitor
from kgen.errors import EmulatorError
from units.conftest import Bench

GRID = [(x, y, 0) for y in range(5) for x in range(0, 8, 2)]


def bench(ctas=1, mode="success", grid=GRID, seed=0):
    b = Bench(ctas, seed, levels={"async-write-unfenced": "error"})
    b.pool = LaunchPool(grid, b.monitor, mode, seed)
    b.clc = ClcUnit(b.units, b.pool)
    return b


def ask(b, warp, bar, fence=True, **more):
    """try_cancel, wait, read: the response words. With `fence` another request may overwrite them."""
    phase = bar.phase & 1
    bar.arrive_expect_tx(16, warp)
    b.clc.try_cancel(warp, 0x100, 0, **more)
    b.agenda.drain()
    assert bar.test(phase, warp)
    b.units.ctas[0].hazards.generic_read(warp, np.array([0x100]), 16, "ld.shared.b128")
    if fence:
        warp.fence_async()
    return b.smem()[0x100:0x110].view(np.uint32).copy()


@pytest.mark.parametrize("mode", ["success", "failure", "random"])
@pytest.mark.parametrize("seed", range(10))
def test_every_cluster_runs_once(mode, seed):
    """Three persistent workers and a launcher that starts clusters when workers are free."""
    chance, done, working = random.Random(seed), [], []
    pool = LaunchPool(GRID, Monitor(), mode, seed)
    while pool.waiting or working:
        if len(working) < 3 and (tile := pool.launch()) is not None:
            b = Bench(seed=seed)
            b.clc, b.bar = ClcUnit(b.units, pool), b.barrier()
            working.append(b)
            done.append(tile)
            continue
        b = chance.choice(working)
        words = ask(b, b.warps[0], b.bar)
        if b.clc.is_canceled(b.warps[0], words):
            done.append(b.clc.first_ctaid(b.warps[0], words))
        else:
            working.remove(b)
    pool.finish()
    assert sorted(done) == sorted(GRID)
    assert bool(pool.cancelled) == (mode != "failure")


def test_multicast_tells_every_cta():
    b = bench(4)
    bars = [b.barrier(8, rank=r) for r in range(4)]
    for bar in bars:
        bar.arrive_expect_tx(16)
    b.clc.try_cancel(b.warps[0], b.at(0, 0x100), b.at(0, 8), multicast=True)
    b.agenda.drain()
    assert [bar.phase for bar in bars] == [1] * 4
    assert {bytes(b.smem(r)[0x100:0x110]) for r in range(4)} == {np.array([0, 0, 0, 1], np.uint32).tobytes()}
    assert b.pool.cancelled == [(0, 0, 0)]


def test_reading_the_response_too_early(fails):
    b = bench()
    b.barrier().arrive_expect_tx(16)
    b.clc.try_cancel(b.warps[0], 0x100, 0)
    with fails("smem-read-in-flight", "try_cancel by warp 0"):
        b.units.ctas[0].hazards.generic_read(b.warps[1], np.array([0x100]), 16, "ld.shared")
    b.agenda.drain()
    with fails("smem-read-unobserved"):
        b.units.ctas[0].hazards.generic_read(b.warps[1], np.array([0x100]), 16, "ld.shared")


def test_an_answer_is_overwritten_after_a_fence_of_its_reader(fails):
    """Any reader's: a wait alone does not bring the asynchronous proxy behind what a thread has loaded."""
    b = bench()
    bar, asker, reader = b.barrier(), b.warps[0], b.warps[1]
    ask(b, asker, bar, fence=False)
    with fails("async-write-unfenced", "an answer that warp 0 has read"):
        b.clc.try_cancel(asker, 0x100, 0)
    asker.fence_async()
    ask(b, asker, bar)
    assert bar.test(bar.phase - 1 & 1, reader)
    b.units.ctas[0].hazards.generic_read(reader, np.array([0x100]), 16, "ld.shared.b128")
    asker.acquire(reader.release())
    with fails("async-write-unfenced", "an answer that warp 1 has read"):
        b.clc.try_cancel(asker, 0x100, 0)
    reader.fence_async()
    asker.acquire(reader.release())
    ask(b, asker, bar)


def test_misuse(fails):
    b = bench(2, grid=[])
    bar, warp = b.barrier(), b.warps[0]
    with fails("clc-alignment"):
        b.clc.try_cancel(warp, 0x108, 0)
    with fails("clc-alignment", "different CTAs"):
        b.clc.try_cancel(warp, 0x100, b.at(1, 0))
    words = ask(b, warp, bar)
    with fails("clc-ctaid-of-failure"):
        b.clc.first_ctaid(warp, words)
    assert not b.clc.is_canceled(warp, words)
    with fails("clc-after-failure"):
        b.clc.try_cancel(warp, 0x100, 0)
    with fails("clc-response"):
        b.clc.is_canceled(warp, np.zeros(4, np.uint32))
    b.units.ctas[1].barriers.exit()
    with fails("clc-exited-cta", "CTA 1"):
        b.clc.try_cancel(b.warps[1], 0x100, 0, multicast=True)


def test_unfinished_grid(fails):
    b = bench()
    b.pool.launch()
    with fails("clc-unfinished", "19 clusters"):
        b.pool.finish()
    with pytest.raises(EmulatorError, match="mode"):
        bench(mode="sometimes")
