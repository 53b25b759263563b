"""One picture of a trace: a row per warp, TMA unit, tensor core and mbarrier of one cluster, over logical steps.

The SVG needs nothing else: system fonts, one light panel. The same trace gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kgen.emulator.trace import OTHER, TENSOR_CORE, TMA, Span, Trace
from kgen.errors import UsageError

__all__ = ["timeline_svg", "window"]

WIDTH, PAD, LEFT = 1200, 20, 150  # pixels
_ROW, _BAR, _HEAD = 17, 13, 26
_TOP = 88
_CHARACTER = 5.6  # rough width of one in a bar's label
_MIN_BAR = 1.2  # narrower bars of one kind are drawn as one

# kind -> (style, what the legend says); the order is that of the legend
LEGEND = {
    "run": "runs",
    "ready": "could run, others have their turn",
    "mbarrier": "waits for an mbarrier",
    "barrier": "waits for a CTA or cluster barrier",
    "group": "waits in wait_group",
    "wait": "waits for something else",
    "load": "TMA load, issue to landing",
    "store": "TMA store",
    "mma": "MMA group, issue to completion",
    "tmem": "tensor memory",
    "other": "other units",
    "phase": "phase of an mbarrier (odd ones darker)",
}


@dataclass(frozen=True)
class _Row:
    label: str
    spans: list[Span]


def window(spans: Iterable[Span]) -> int:
    """How many steps show the pipeline's ring wrap once: to the end of the third phase of the mbarrier that gets there
    first, or the whole run if none does."""
    spans = list(spans)
    third = [s.end for s in spans if s.kind == "phase" and s.label == "phase 2"]
    last = max((s.end for s in spans), default=1)
    return min(round(min(third) * 1.08), last) if third else last


def timeline_svg(trace: Trace, title: str, steps: int | None = None) -> str:
    """The picture of the first cluster, from step 0 to `steps` (left out: `window`, or the
    whole run if it failed).

    Raises UsageError where nothing was recorded.
    """
    everything = trace.spans()
    if not everything:
        raise UsageError("nothing was recorded, so there is nothing to draw")
    shown = [c for c in trace.ctas if c.cluster is trace.ctas[0].cluster][:2]
    inside = {c.index for c in shown}
    spans = [s for s in everything if s.cta in inside]
    end = max(steps or (trace.steps if trace.failed else window(spans)), 1)
    scale = (WIDTH - LEFT - PAD) / end

    y, blocks = _TOP, []
    kinds: set[str] = set()
    for cta in shown:
        own = [s for s in spans if s.cta == cta.index]
        block = {"label": f"{cta.name}, rank {cta.rank} of its cluster" if len(shown) > 1 else cta.name, "y": y}
        y += _HEAD
        rows = []
        for row in _rows(own, trace.barrier_rows(), end):
            kinds |= {"mma" if s.kind == "group" and s.row == TENSOR_CORE else s.kind for s in row.spans}
            bars = [_bar(s, y, scale, end, cta.rank) for s in _merged(row.spans, _MIN_BAR / scale)]
            _unlabel(bars)
            rows.append({"label": row.label, "y": y, "text_y": y + 11, "bars": bars})
            y += _ROW
        blocks.append(block | {"rows": rows, "bottom": y})
        y += 8
    legend, legend_height = _legend([k for k in LEGEND if k in kinds], y + 34)
    total = trace.steps
    part = "all of its" if end >= total else f"the first {end} of {total}"
    others = len(trace.ctas) - len(shown)
    return _template().render(
        width=WIDTH, height=y + 34 + legend_height + 10, pad=PAD, left=LEFT, right=WIDTH - PAD, top=_TOP, bottom=y,
        bar=_BAR, row=_ROW, title=title, blocks=blocks, legend=legend, ticks=_ticks(end, scale),
        subtitle=f"{part} logical steps; one step is one instruction of one warp, or one completed asynchronous "
        f"action{f'; {others} more CTAs are not drawn' if others else ''}",
    )  # fmt: skip


# --- rows -----------------------------------------------------------------------------------------------


def _rows(spans: list[Span], barriers: list[str], end: int) -> list[_Row]:
    spans = [s for s in spans if s.start < end]
    by_row: dict[str, list[Span]] = {}
    for s in spans:
        by_row.setdefault(s.row, []).append(s)
    warps = sorted(int(r[5:]) for r in by_row if r.startswith("warp "))
    idle = [w for w in warps if _idle(by_row[f"warp {w}"])]
    rows = [_Row(f"warp {w}", by_row[f"warp {w}"]) for w in warps if w not in idle]
    if idle:
        # They all do the same: start, meet the others, end.
        rows.append(_Row(f"warp{'s' if len(idle) > 1 else ''} {_ranges(idle)}", by_row[f"warp {idle[0]}"]))
    copies = [s for s in by_row.get(TMA, ()) if s.kind in ("load", "store")]
    rows += _stacked("TMA loads", [s for s in copies if s.kind == "load"], 16)
    rows += _stacked("TMA stores", [s for s in copies if s.kind == "store"], 4)
    core = by_row.get(TENSOR_CORE, [])
    groups = [s for s in core if s.kind == "group"]
    owners = sorted({s.label.partition(" of ")[2] for s in groups})
    for owner in owners:
        rows += _stacked(f"MMA, {owner}" if owner else TENSOR_CORE, [s for s in groups if s.label.endswith(owner)], 3)
    if not groups:
        rows += _stacked(TENSOR_CORE, [s for s in core if s.kind == "mma"], 4)
    rows += _stacked("tensor memory", [s for s in core if s.kind == "tmem"], 2)
    rows += _stacked(OTHER, by_row.get(OTHER, []), 3)
    return rows + [_Row(name, by_row[name]) for name in barriers if name in by_row]


def _idle(spans: list[Span]) -> bool:
    return not any(s.kind in ("mbarrier", "group", "wait") for s in spans) and sum(
        s.end - s.start for s in spans if s.kind == "run"
    ) < 64


def _ranges(numbers: list[int]) -> str:
    """[1, 2, 3, 5] -> "1-3, 5"."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][-1] + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _stacked(label: str, spans: list[Span], most: int) -> list[_Row]:
    """Spans that overlap, on as many lines as they need; what `most` lines do not hold shares the last."""
    lines: list[list[Span]] = []
    for s in spans:
        line = next((x for x in lines if x[-1].end <= s.start), None)
        if line is None and len(lines) < most:
            lines.append(line := [])
        (lines[-1] if line is None else line).append(s)
    return [_Row(label if i == 0 else "", x) for i, x in enumerate(lines)]


def _merged(spans: list[Span], short: float) -> list[Span]:
    """Neighbours of one kind that are too narrow to see, as one; the wide ones keep their labels."""
    result: list[Span] = []
    for s in spans:
        last = result[-1] if result else None
        near = last is not None and s.kind == last.kind and s.start - last.end <= short
        if near and min(s.end - s.start, last.end - last.start) <= short:
            result[-1] = replace(last, end=max(s.end, last.end), label=f"{last.label}; {s.label}"[:120])
        else:
            result.append(s)
    return result


# --- drawing --------------------------------------------------------------------------------------------


def _bar(span: Span, y: int, scale: float, end: int, rank: int) -> dict:
    left = LEFT + span.start * scale
    right = LEFT + min(span.end, end) * scale
    width = max(right - left, 0.8)
    style = span.kind
    if span.row == TENSOR_CORE and span.kind == "group":
        style = "mma"
    if span.kind == "phase" and int(span.label.split()[-1]) % 2:
        style = "odd"
    left = min(left, WIDTH - PAD - width)
    return {
        "style": style, "x": round(left, 1), "y": y, "width": round(width, 1), "text": _short(span, width, rank),
        "tip": f"{span.label} [{span.start}-{span.end}]", "tx": round(left + 3, 1), "ty": y + 10,
    }  # fmt: skip


def _unlabel(bars: list[dict]) -> None:
    """Takes the words from bars that another bar of the row covers in part."""
    for bar, following in pairwise(bars):
        if following["x"] < bar["x"] + bar["width"] - 1:
            bar["text"] = following["text"] = ""


def _short(span: Span, width: float, rank: int) -> str:
    """The longest label of a bar that fits into it."""
    candidates: list[str] = []
    if span.kind == "phase":
        candidates = [span.label, span.label.split()[-1]]
    elif span.kind in ("load", "store"):
        words = span.label.split(" at (")
        name = words[0].replace("TMA load of ", "").replace("TMA store of ", "").replace("bulk ", "")
        at = words[1].split(")")[0] if len(words) > 1 else ""
        to = span.label.partition(" to shared ")[2].rpartition(" ")[2]
        target = f" → CTA {to}" if to and to != str(rank) else ""
        candidates = [f"{name} ({at}){target}", f"{name} ({at})", name] if at else [name + target, name]
    elif span.kind == "mbarrier":
        candidates = [span.label, span.label.split(",")[0]]
    elif span.kind in ("barrier", "group", "wait", "mma", "tmem", "other"):
        candidates = [span.label.partition(" of ")[0]]  # the row names the owner
        candidates += [f"wait {candidates[0].split()[-1]}"] if "wait_group" in span.label else []
        candidates += [candidates[-1].rpartition(" ")[2]] if span.row == TENSOR_CORE and span.kind == "group" else []
    return next((c for c in candidates if len(c) * _CHARACTER + 6 <= width), "")


def _ticks(end: int, scale: float) -> list[dict]:
    power = 10 ** math.floor(math.log10(max(end, 10)))
    step = next(s for f in (0.1, 0.2, 0.5, 1, 2) if end / (s := max(1, int(f * power))) <= 12)
    return [{"x": round(LEFT + i * scale, 1), "text": f"{i:,}".replace(",", " ")} for i in range(0, end + 1, step)]


def _legend(kinds: list[str], y: int) -> tuple[list[dict], int]:
    x, entries = LEFT, []
    for kind in kinds:
        width = 26 + 6.4 * len(LEGEND[kind])
        if x + width > WIDTH - PAD:
            x, y = LEFT, y + 20
        entries.append({"style": kind, "x": round(x), "y": y, "text": LEGEND[kind]})
        x += width + 10
    return entries, (entries[-1]["y"] - entries[0]["y"] + 20) if entries else 0


def _template():
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("timeline.svg.j2")
