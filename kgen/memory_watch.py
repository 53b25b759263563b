"""The most memory that any process of a session takes.

`getrusage` cannot tell: a child's maximum starts at what its parent had resident when it was made, so a small compiler
started by a large Python would be charged with the Python.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

PERIOD_S = 0.02  # the kernel keeps the high-water mark, so only what a process takes in its last 20 ms can be missed


class PeakMemory:
    """Watches the session of process `session` until `stop()`, which returns the peak in MiB (0 without /proc)."""

    def __init__(self, session: int):
        self._session, self._peak_kib, self._done = session, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self._peak_kib / 1024

    def _watch(self) -> None:
        while not self._done.wait(PERIOD_S):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError, ValueError, IndexError):  # it may end while it is read
                    # After the name in parentheses: state, parent, group, session.
                    if int((process / "stat").read_text().rpartition(")")[2].split()[3]) != self._session:
                        continue
                    status = (process / "status").read_text()
                    self._peak_kib = max(self._peak_kib, int(status.split("VmHWM:")[1].split()[0]))
