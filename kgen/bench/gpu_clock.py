"""The device's time, by CUDA events."""

from __future__ import annotations

import math
import time

from kgen.runtime import DeviceBuffer, Event, Stream

_FILLER_BYTES = 256 << 20  # far beyond the L2, so that its time is that of memory and hardly varies


class GpuClock:
    """A `kgen.bench.timing.Clock` on one stream. Events are kept and reused from one run to the next."""

    def __init__(self, stream: Stream):
        self._stream = stream
        self._events: list[Event] = []
        self._used = 0
        self._filler: DeviceBuffer | None = None
        self._filler_s = 0.0

    def mark(self) -> int:
        """Queue a time stamp."""
        token = self._used
        if token == len(self._events):
            self._events.append(Event())
        self._stream.record(self._events[token])
        self._used = token + 1
        return token

    def seconds_between(self, start: int, end: int) -> float:
        """Device time between two stamps; only after `synchronize`."""
        return self._events[end].milliseconds_since(self._events[start]) / 1e3

    def synchronize(self) -> None:
        """Wait for everything queued on the stream; raises what it raised on the device."""
        self._stream.synchronize()

    def reset(self) -> None:
        """Make all events free again."""
        self._used = 0

    def host_seconds(self) -> float:
        """A monotonic host clock."""
        return time.perf_counter()

    def fill(self, seconds: float) -> None:
        """Queue memory fills that last at least about `seconds`."""
        if self._filler is None:
            self._filler = DeviceBuffer(_FILLER_BYTES)
            self._filler_s = self._time_filler(self._filler)
        for _ in range(math.ceil(seconds / self._filler_s)):
            self._filler.fill_byte(0, self._stream)

    def _time_filler(self, filler: DeviceBuffer) -> float:
        filler.fill_byte(0, self._stream)
        start, end = Event(), Event()
        self._stream.record(start)
        for _ in range(4):
            filler.fill_byte(0, self._stream)
        self._stream.record(end)
        self._stream.synchronize()
        return max(end.milliseconds_since(start) / 4e3, 1e-6)
