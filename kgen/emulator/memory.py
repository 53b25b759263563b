"""State spaces as byte arrays, and how generic addresses map to them. PTX ISA §5.1, §7.1 (cvta), §9.7.9.

A generic address is a window (bits 47:40) and an address in it. Global memory, kernel parameters and constants
share one window, so that their generic and state-space addresses are the same number, as on the hardware.
A shared address is `rank << 24 | offset`: the CTA's rank in its cluster, then the byte in its memory. The first
`SHARED_BASE` bytes of a CTA's memory belong to the system, as on sm_90 and sm_100.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from kgen.errors import EmulatorError

__all__ = ["GLOBAL_WINDOW", "LOCAL_WINDOW", "SHARED_BASE", "SHARED_WINDOW", "Buffer", "GlobalMemory", "SharedMemory"]

WINDOW_SHIFT = 40
GLOBAL_WINDOW = 0x70 << WINDOW_SHIFT
SHARED_WINDOW = 0x71 << WINDOW_SHIFT
LOCAL_WINDOW = 0x72 << WINDOW_SHIFT
SHARED_BASE = 1024
RANK_SHIFT = 24
_FENCE = 4096  # unmapped bytes between buffers
_ALIGN = 256  # of buffers, as cudaMalloc gives

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def views(data: np.ndarray) -> dict[int, np.ndarray]:
    """Unsigned views of a byte array (its length a multiple of 8) by element bytes."""
    return {n: data.view(t) for n, t in _UNSIGNED.items()}


def rows(data: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Views by (element bytes, count): [n] for one element, [n, count] for vectors of up to 16 bytes."""
    found = {}
    for size, view in views(data).items():
        for count in (1, 2, 4, 8):
            if size * count <= 16:
                found[size, count] = view if count == 1 else view.reshape(-1, count)
    return found


@dataclass(frozen=True)
class Buffer:
    """Addresses start..end-1 (bytes) of a named piece of global memory."""

    name: str
    start: int
    end: int
    writable: bool = True


class GlobalMemory:
    """Fenced buffers in one arena. Every access must lie in one buffer."""

    base = GLOBAL_WINDOW

    def __init__(self):
        self.buffers: list[Buffer] = []
        self._starts: list[int] = []
        self._pending: list[tuple[Buffer, bytes | np.ndarray]] = []
        self._end = self.base + _FENCE
        self.bytes = np.zeros(0, np.uint8)

    def fresh(self) -> GlobalMemory:
        """A memory with the same buffers, to which others may be added."""
        other = GlobalMemory()
        other.buffers, other._starts = list(self.buffers), list(self._starts)
        other._pending, other._end = list(self._pending), self._end
        return other

    def add(self, name: str, data, align: int = _ALIGN, writable: bool = True) -> int:
        """Reserves a buffer with the bytes of `data`; its address. Call `finish` before any access."""
        raw = np.frombuffer(bytes(data), np.uint8) if not isinstance(data, np.ndarray) else data.view(np.uint8)
        start = -(-self._end // align) * align
        buffer = Buffer(name, start, start + raw.size, writable)
        self.buffers.append(buffer)
        self._starts.append(start)
        self._pending.append((buffer, raw.reshape(-1)))
        self._end = buffer.end + _FENCE
        return start

    def finish(self) -> None:
        """Builds the arena from the buffers added so far."""
        self.bytes = np.zeros(-(-(self._end - self.base) // 16) * 16, np.uint8)
        for buffer, raw in self._pending:
            self.bytes[buffer.start - self.base : buffer.end - self.base] = raw
        self.views, self.rows = views(self.bytes), rows(self.bytes)
        self._last = self.buffers[0] if self.buffers else Buffer("", 0, 0)

    def find(self, address: int) -> Buffer | None:
        """The buffer that holds `address`."""
        i = bisect_right(self._starts, address) - 1
        return self.buffers[i] if i >= 0 and address < self.buffers[i].end else None

    def check(self, address: int, size: int, what: str, write: bool = False) -> Buffer:
        """The buffer of bytes address..address+size-1, or EmulatorError naming the nearest one."""
        buffer = self.find(address)
        if buffer is not None and address + size <= buffer.end:
            if write and not buffer.writable:
                raise EmulatorError(f"{what}: {buffer.name} is read-only")
            return buffer
        raise EmulatorError(f"{what} of {size} bytes at {address:#x} is out of bounds: {self._nearest(address)}")

    def _nearest(self, address: int) -> str:
        if not self.base <= address < self._end + (1 << 36):
            return "no buffer is near (is it a shared or local address, or a host pointer?)"
        i = max(bisect_right(self._starts, address) - 1, 0)
        b = self.buffers[i]
        size = b.end - b.start
        if address >= b.end:
            return f"{address - b.end} bytes past the end of {b.name} ({size} bytes at {b.start:#x})"
        if address < b.start:
            return f"{b.start - address} bytes before {b.name} ({size} bytes at {b.start:#x})"
        return f"it runs over the end of {b.name} ({size} bytes at {b.start:#x})"

    def indices(self, addresses: np.ndarray, size: int, what: str, write: bool = False) -> np.ndarray:
        """int64 byte indices into the arena of uint64 `addresses`, each `size` bytes, all checked."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        last = self._last
        if not (last.start <= low and high <= last.end and (last.writable or not write)):
            for a in addresses.tolist():
                last = self.check(a, size, what, write)
            self._last = last
        return (addresses - np.uint64(self.base)).view(np.int64)

    def spans(self, low: int, high: int, write: bool) -> bool:
        """Whether the bytes low..high-1 lie in one buffer (which may be written)."""
        last = self._last
        if not (last.start <= low and high <= last.end):
            last = self.find(low)
            if last is None or high > last.end:
                return False
            self._last = last
        return last.writable or not write

    def gather(self, addresses: np.ndarray, nbytes: int, what: str) -> np.ndarray:
        """uint8 [n, nbytes] at int64 `addresses`, which lie in one buffer."""
        return self.bytes[self._span(addresses, nbytes, what, False)]

    def scatter(self, addresses: np.ndarray, data: np.ndarray, what: str) -> None:
        """Stores uint8 [n, nbytes] at int64 `addresses`, which lie in one buffer."""
        self.bytes[self._span(addresses, data.shape[1], what, True)] = data

    def _span(self, addresses, nbytes: int, what: str, write: bool) -> np.ndarray:
        addresses = np.asarray(addresses, np.int64)
        low, high = int(addresses.min()), int(addresses.max()) + nbytes
        self.check(low, high - low, what, write)
        return (addresses - self.base)[:, None] + np.arange(nbytes)

    def read(self, address: int, size: int, what: str = "read") -> np.ndarray:
        """uint8 copy of `size` bytes."""
        self.check(address, size, what)
        return self.bytes[address - self.base : address - self.base + size].copy()

    def write(self, address: int, data, what: str = "write") -> None:
        """Stores bytes (a buffer or uint8 array)."""
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray) else data
        self.check(address, raw.size, what, write=True)
        self.bytes[address - self.base : address - self.base + raw.size] = raw


class SharedMemory:
    """The shared memory of one CTA: `bytes` (uint8) and `init` (bool), indexed by the low 24 address bits."""

    def __init__(self, size: int, rank: int = 0):
        total = SHARED_BASE + -(-size // 16) * 16
        self.size, self.rank = SHARED_BASE + size, rank
        self.bytes = np.zeros(total, np.uint8)
        self.init = np.zeros(total, bool)
        self.base = rank << RANK_SHIFT
        self.views, self.rows = views(self.bytes), rows(self.bytes)
        flags = self.init.view(np.uint8)
        self.init_views = views(flags)
        self.init_rows = {n: self.init if n == 1 else self.init.reshape(-1, n) for n in (1, 2, 4, 8, 16)}
        self.guarded = False  # True: a check wants to see every generic access
