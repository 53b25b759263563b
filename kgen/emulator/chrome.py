"""A trace as Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open.

A CTA is a process; its threads are its warps by number, then TMA, tensor core, other units and mbarriers. One logical
step is written as one microsecond. Arrows lead from the load that completed a phase to the waits that it ended.
"""

from __future__ import annotations

from kgen.emulator.trace import OTHER, TENSOR_CORE, TMA, Span, Trace

__all__ = ["to_chrome"]

# Thread numbers of the rows that are no warps (a CTA has at most 32).
_FIRST = {TMA: 100, TENSOR_CORE: 1000, OTHER: 2000}
_BARRIERS = 3000


def to_chrome(trace: Trace) -> dict:
    """The trace as plain data for a JSON file. The same launch with the same seed gives the same data."""
    spans = trace.spans()
    processes = {cta.index: number for number, cta in enumerate(trace.ctas, 1)}
    lanes = _lanes(spans)
    barriers = {row: i for i, row in enumerate(trace.barrier_rows())}
    threads: dict[tuple[int, int], str] = {}
    events = []
    for span, lane in zip(spans, lanes, strict=True):
        pid, tid = processes[span.cta], _thread(span, lane, barriers)
        threads[pid, tid] = span.row
        events.append({
            "name": span.label, "cat": span.kind, "ph": "X", "ts": span.start, "dur": span.end - span.start,
            "pid": pid, "tid": tid,
        })  # fmt: skip
    arrows = _arrows(spans, events)
    names = []
    for cta in trace.ctas:
        pid = processes[cta.index]
        names.append(_meta("process_name", pid, 0, {"name": f"{cta.name} on SM {cta.sm}"}))
        names.append(_meta("process_sort_index", pid, 0, {"sort_index": pid}))
    for (pid, tid), row in sorted(threads.items()):
        names.append(_meta("thread_name", pid, tid, {"name": row}))
        names.append(_meta("thread_sort_index", pid, tid, {"sort_index": tid}))
    return {"traceEvents": names + events + arrows, "displayTimeUnit": "ns", "otherData": {"clock": "logical steps"}}


def _meta(name: str, pid: int, tid: int, args: dict) -> dict:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _lanes(spans: list[Span]) -> list[int]:
    """For each span the line of its row that is free: spans of one thread must not overlap."""
    busy: dict[tuple, list[int]] = {}
    result = []
    for span in spans:
        free = busy.setdefault((span.cta, span.row), [])
        lane = next((i for i, end in enumerate(free) if end <= span.start), len(free))
        free[lane : lane + 1] = [span.end]
        result.append(lane)
    return result


def _thread(span: Span, lane: int, barriers: dict[str, int]) -> int:
    if span.row in _FIRST:
        return _FIRST[span.row] + lane
    if span.row.startswith("warp "):
        return int(span.row.removeprefix("warp "))
    return _BARRIERS + barriers[span.row]


def _arrows(spans: list[Span], events: list[dict]) -> list[dict]:
    """Flow events. Every completion has a step of its own, so equal ends mean that one caused the other."""
    phases = {s.end for s in spans if s.kind == "phase"}
    loads = {s.end: e for s, e in zip(spans, events, strict=True) if s.kind == "load" and s.end in phases}
    arrows = []
    for span, event in zip(spans, events, strict=True):
        load = loads.get(span.end)
        if span.kind != "mbarrier" or load is None:
            continue
        common = {"name": "completes", "cat": "completes", "id": len(arrows) // 2 + 1}
        at = span.end - 1  # within both spans, so that the viewer binds the arrow to them
        arrows.append(common | {"ph": "s", "ts": at, "pid": load["pid"], "tid": load["tid"]})
        arrows.append(common | {"ph": "f", "bp": "e", "ts": at, "pid": event["pid"], "tid": event["tid"]})
    return arrows
