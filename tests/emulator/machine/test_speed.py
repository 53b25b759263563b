"""Runs of instructions make the emulator fast: an epilogue, with and without them.

Machines differ, so what is asserted is a ratio of CPU times in one process; docs/emulator.md has absolute numbers.
"""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np

from kgen.emulator import blocks
from kgen.emulator.launch import Device
from kgen.emulator.program import load

TILES = 16


def rate(ptx: str, inputs, d) -> float:
    """Warp-instructions per second of CPU time, once all runs are translated."""
    load.cache_clear()
    for _ in range(2):
        start = time.process_time()
        count = Device(ptx).launch(4, 128, (*inputs, d, np.float32(1.5), np.int32(TILES))).instructions
        seconds = time.process_time() - start
    return count / seconds


def test_an_epilogue_is_right_and_several_times_faster_than_instruction_by_instruction(compiled, monkeypatch):
    rng = np.random.default_rng(1)
    sums, bias = rng.integers(-99, 99, (TILES * 128, 64)).astype(np.float32), np.arange(64, dtype=np.float32)
    ptx, d = compiled("epilogue.cu"), np.zeros((TILES * 128, 64), ml_dtypes.bfloat16)
    fast = rate(ptx, (sums, bias), d)
    assert (d == np.maximum(1.5 * sums + bias, 0).astype(ml_dtypes.bfloat16)).all()
    monkeypatch.setattr(blocks, "_SHORTEST", 10**9)
    slow = rate(ptx, (sums, bias), d)
    load.cache_clear()
    assert fast > 4 * slow, f"{fast:,.0f} warp-instructions per second against {slow:,.0f}"
