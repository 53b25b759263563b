"""Checks of a launch: which only warn, and those on generic accesses to shared memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kgen.emulator.check_names import verify
from kgen.emulator.monitor import DEFAULT_LEVELS, ERROR, OFF, WARN, Monitor

__all__ = ["check_read", "make_monitor", "mark_write"]

_ONES = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}


class _All(dict):
    """Every check warns, but for those that are listed and those that are off."""

    def get(self, check, default=None):
        return super().get(check, OFF if DEFAULT_LEVELS.get(check) == OFF else WARN)


def make_monitor(warn: Iterable[str], strict: Iterable[str], locate) -> Monitor:
    """The monitor of a launch. Names of checks that only warn ("all": every one), and of those that are errors."""
    names, strict = set(warn), set(strict)
    verify((names - {"all"}) | strict)
    levels = _All() if "all" in names else dict.fromkeys(names, WARN)
    levels.update(dict.fromkeys(strict, ERROR))
    return Monitor(levels=levels, locate=locate)


def check_read(w, memory, index: np.ndarray, size: int, what: str, strong: bool = False) -> None:
    """A generic read of `size` bytes at each byte index of shared memory. Fails: uninitialised-shared, and where
    asynchronous units are about, all of SharedHazards.generic_read."""
    if memory.guarded:
        memory.cta.hazards.generic_read(w.actor, index, size, what, strong)
        return
    init = memory.init_views
    if size in _ONES:
        ok = (init[size][index >> size.bit_length() - 1] == _ONES[size]).all()
    else:
        ok = all((init[8][(index >> 3) + j] == _ONES[8]).all() for j in range(size // 8))
    if not ok:
        bad = next(i for i in index.tolist() if not memory.init[i : i + size].all())
        text = f"{what}: shared memory at offset {bad:#x} of {memory.cta.name} was never written"
        w.machine.monitor.fail("uninitialised-shared", text)


def mark_write(w, memory, index: np.ndarray, size: int, what: str, lanes=None, strong: bool = False) -> None:
    """A generic write by `lanes` (numbers, one per index; the first ones if None); its bytes are initialised."""
    if memory.guarded:
        memory.cta.hazards.generic_write(w.actor, index, size, what, lanes, strong)
        return
    init = memory.init_views
    if size in _ONES:
        init[size][index >> size.bit_length() - 1] = _ONES[size]
    else:
        for j in range(size // 8):
            init[8][(index >> 3) + j] = _ONES[8]
