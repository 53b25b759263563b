"""A timeline of a launch: Chrome's trace event format, which ui.perfetto.dev opens.

Rows are warps, TMA units, tensor cores and barriers. Time is counted in logical steps (written as microseconds):
it says what came before what, not how long it took on a card.
"""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["Trace"]

_GROUPS = {
    "warp": "warps", "tma": "TMA", "tma-read": "TMA", "bulk": "TMA", "wgmma": "tensor cores", "mma": "tensor cores",
    "cp": "tensor cores", "commit": "tensor cores", "tmem": "tensor memory", "barrier": "barriers",
}  # fmt: skip


class Trace:
    """Collects events; give it to `launch(trace=...)`, then `write` it."""

    def __init__(self):
        self.events: list[tuple[str, str, str, int, int]] = []

    def on_event(self, kind: str, unit: str, label: str, start: int, end: int) -> None:
        """One thing that lasted from step `start` to step `end`."""
        self.events.append((kind, unit, label, start, end))

    def to_json(self) -> dict:
        """The trace as plain data. Events of one row that overlap are spread over lanes of that row."""
        groups: dict[str, int] = {}
        rows: dict[tuple[str, str, int], int] = {}
        busy: dict[tuple[str, str], list[int]] = {}
        out = []
        for kind, unit, label, start, end in sorted(self.events, key=lambda e: (e[3], e[4])):
            group = _GROUPS.get(kind, kind)
            pid = groups.setdefault(group, len(groups) + 1)
            lanes = busy.setdefault((group, unit), [])
            lane = next((i for i, free in enumerate(lanes) if free <= start), len(lanes))
            if lane == len(lanes):
                lanes.append(0)
            lanes[lane] = max(end, start + 1)
            tid = rows.setdefault((group, unit, lane), len(rows) + 1)
            event = {
                "name": label,
                "cat": kind,
                "ph": "X",
                "ts": start,
                "dur": max(end - start, 1),
                "pid": pid,
                "tid": tid,
            }
            out.append(event)
        names = [
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": group}} for group, pid in groups.items()
        ]
        names += [
            {"name": "thread_name", "ph": "M", "pid": groups[group], "tid": tid, "args": {"name": unit}}
            for (group, unit, _), tid in rows.items()
        ]
        return {"traceEvents": names + out, "displayTimeUnit": "ns"}

    def write(self, path: Path) -> None:
        """Writes the JSON file."""
        Path(path).write_text(json.dumps(self.to_json()))
