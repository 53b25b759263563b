"""The checks that can be turned to warnings, and what they report."""

from __future__ import annotations

import warnings

import numpy as np

from kgen.errors import EmulatorError

__all__ = ["CheckError", "Checks", "EmulatorWarning"]

NAMES = ("uninitialised-shared", "uninitialised-register", "race", "proxy-fence", "phase", "exit-pending", "leak")


class CheckError(EmulatorError):
    """A check failed; `check` is its name, as `launch(warn=...)` takes it."""

    def __init__(self, text: str, check: str = ""):
        self.check = check
        super().__init__(text)


class EmulatorWarning(UserWarning):
    """A failed check that was turned to a warning."""


class Checks:
    """`warn` holds the names of checks (or "all") that only warn."""

    def __init__(self, warn=()):
        unknown = set(warn) - {*NAMES, "all"}
        if unknown:
            raise EmulatorError(f"unknown checks {sorted(unknown)}; known: {', '.join(NAMES)}, all")
        self.warn = set(warn)
        self.messages: list[str] = []

    def fail(self, check: str, text: str) -> None:
        """CheckError, or a warning if the check was turned to one."""
        text = f"{text} [{check}]"
        if check in self.warn or "all" in self.warn:
            self.messages.append(text)
            warnings.warn(text, EmulatorWarning, stacklevel=3)
            return
        raise CheckError(text, check)

    def generic_read(self, w, memory, index: np.ndarray, size: int, what: str) -> None:
        """A warp's generic read of `size` bytes at each index of shared memory."""
        init = memory.init_views
        if size in (1, 2, 4, 8):
            ok = (init[size][index >> size.bit_length() - 1] == _ONES[size]).all()
        else:
            ok = all((init[8][(index >> 3) + j] == _ONES[8]).all() for j in range(size // 8))
        if not ok:
            bad = next(i for i in index.tolist() if not memory.init[i : i + size].all())
            self.fail("uninitialised-shared", f"{what}: shared memory at offset {bad:#x} was never written")

    def generic_write(self, w, memory, index: np.ndarray, size: int, what: str) -> None:
        """A warp's generic write; marks the bytes as initialised."""
        init = memory.init_views
        if size in (1, 2, 4, 8):
            init[size][index >> size.bit_length() - 1] = _ONES[size]
        else:
            for j in range(size // 8):
                init[8][(index >> 3) + j] = _ONES[8]


_ONES = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}
