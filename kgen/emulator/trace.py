"""A recorded launch: what every warp, TMA unit, tensor core and barrier did, in logical steps.

A step is one instruction of one warp, or one completed asynchronous action; the warps of all CTAs take turns. It says
what came before what, not how long it took on a card. `Trace` records, `chrome.py` and `timeline.py` show it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Span", "Trace"]

# Rows of a CTA besides its warps. What the emulator calls a unit's events -> (row, kind).
TMA, TENSOR_CORE, OTHER = "TMA", "tensor core", "other units"
_UNITS = {
    "tma": (TMA, "copy"), "bulk": (TMA, "copy"), "tma-read": (TMA, "source read"),
    "wgmma": (TENSOR_CORE, "mma"), "mma": (TENSOR_CORE, "mma"), "cp": (TENSOR_CORE, "tmem"),
    "wgmma-group": (TENSOR_CORE, "group"), "tmem": (TENSOR_CORE, "tmem"),
}  # fmt: skip
_PLACE = re.compile(r"CTA \((\d+), (\d+), (\d+)\)(?: warp (\d+))?")


@dataclass(frozen=True)
class Span:
    """One thing that lasted from step `start` to step `end`.

    cta    index in the grid of the CTA that did it or issued it
    row    "warp 3", TMA, TENSOR_CORE, OTHER, or the name of an mbarrier
    kind   of a warp: "run", "ready" (it could run, others had their turn), or what it waits for: "mbarrier", "barrier",
           "group", "wait" (something else); of a unit: "load", "store", "source read", "mma",
           "group", "tmem", "other"; of a barrier: "phase"
    """

    cta: tuple[int, int, int]
    row: str
    kind: str
    label: str
    start: int
    end: int


@dataclass
class _Wait:
    """`done` are the steps at which what it waits for came true, in order; None if nobody tells."""

    step: int
    kind: str  # "lanes" for a wait for lanes of the same warp
    label: str
    done: list[int] | None


class Trace:
    """Records one launch; give it to `launch(trace=...)`.

    `names`: what to call mbarriers, by byte offset from the start of dynamic shared memory.
    """

    def __init__(self, names: dict[int, str] | None = None):
        self.names = names or {}
        self.machine = None
        self.ctas: list = []  # in order of their start
        self._spans: list[Span] = []  # of units and barriers
        self._slices: dict[tuple, list[tuple[int, int]]] = {}  # (CTA, warp) -> when it had its turn
        self._waits: dict[tuple, list[_Wait]] = {}
        self._done: dict[object, list[int]] = {}  # barrier -> steps of its completions
        self._rows: dict[object, str] = {}  # of mbarriers
        self._offsets: dict[str, int] = {}  # row -> offset in shared memory
        self._phase_start = 0  # of the phase whose completion is being told
        self._issues: dict[tuple, list[tuple[int, int]]] = {}  # (CTA, warp) -> bulk stores as (issue, completion)
        self._commits: dict[tuple, list[int]] = {}
        self._mma_issues: dict[tuple, list[int]] = {}  # (CTA, warp) -> when it issued tcgen05.mma and cp
        self._mma_commits: dict[tuple, dict[int, int]] = {}  # (CTA, warp) -> commit: its last arrival

    # --- hooks that the emulator calls ------------------------------------------------------------------

    def attach(self, machine) -> None:
        """Before the launch runs."""
        self.machine = machine
        machine.trace = self
        machine.monitor.listeners.append(self)

    def counted(self, code: list) -> list:
        """A kernel's instructions, each of which moves the clock: what it issues bears its own step."""
        monitor = self.machine.monitor

        def count(instruction):
            def run(w, m):
                monitor.now += 1
                return instruction(w, m)

            return run

        return [count(x) for x in code]

    def started(self, cluster) -> None:
        """A cluster's CTAs exist and have run nothing."""
        for cta in cluster.ctas:
            self.ctas.append(cta)
            cta.table.watchers.append(lambda barrier, cta=cta: self._completed(cta, barrier))

    def waits(self, warp, group, control) -> None:
        """Lanes of a warp cannot go on."""
        kind, label, done = "lanes", "", None
        if control[0] != "sync":
            kind, label, done = self._describe(warp, control[1])
        key = (warp.cta.index, warp.index)
        self._waits.setdefault(key, []).append(_Wait(self.machine.monitor.now, kind, label, done))

    def barrier_arrival(self, warp, barrier) -> None:
        """A warp came to a named barrier; when the last one has, `generation` has moved on."""
        steps = self._steps(barrier)
        if barrier.generation > len(steps):
            steps.append(self.machine.monitor.now)

    def cluster_barrier(self, cluster) -> None:
        """A cluster barrier opened."""
        self._steps(cluster).append(self.machine.monitor.now)

    def on_event(self, kind: str, unit: str, label: str, start: int, end: int) -> None:
        """What the monitor tells its listeners."""
        if kind == "barrier":  # `_completed`, which knows the CTA, is called right after
            self._phase_start = start
            return
        match = _PLACE.search(unit) or _PLACE.search(self.machine.monitor.place())
        cta = tuple(int(x) for x in match.groups()[:3]) if match else self.ctas[0].index
        warp = int(match[4]) if match and match[4] else None
        if kind == "warp":
            self._slices.setdefault((cta, warp), []).append((start, end))
        elif kind == "bulk-commit":
            self._commits.setdefault((cta, warp), []).append(end)
        elif kind == "commit":
            arrivals = self._mma_commits.setdefault((cta, warp), {})
            arrivals[start] = max(end, arrivals.get(start, 0))
        else:
            if kind in ("mma", "cp"):
                self._mma_issues.setdefault((cta, warp), []).append(start)
            row, shown = _UNITS.get(kind, (OTHER, "other"))
            if kind == "wgmma-group":
                label = f"{label} of {unit[unit.index('warpgroup') :]}"
            if shown == "copy":
                into_shared = re.search(r"(load|copy|reduction).* to shared ", label) or label.startswith("prefetch")
                shown = "load" if into_shared else "store"
                if not into_shared:
                    self._issues.setdefault((cta, warp), []).append((start, end))
            self._spans.append(Span(cta, row, shown, label, start, end))

    def _completed(self, cta, barrier) -> None:
        steps, now = self._steps(barrier), self.machine.monitor.now
        if barrier not in self._rows:
            offset = next(o for o, b in cta.table.barriers.items() if b is barrier)
            self._rows[barrier] = self._barrier_name(offset)
            self._offsets[self._rows[barrier]] = offset
        label = f"phase {barrier.phase - 1}"
        self._spans.append(Span(cta.index, self._rows[barrier], "phase", label, self._phase_start, now))
        steps.append(now)

    def _barrier_name(self, offset: int) -> str:
        at = offset - self.machine.program.shared_dynamic_at
        return self.names.get(at, f"mbarrier {offset:#x}")

    def _steps(self, barrier) -> list[int]:
        return self._done.setdefault(barrier, [])

    def _describe(self, warp, wait) -> tuple[str, str, list[int] | None]:
        """(kind, label, steps of completion) of what the emulator holds a group of lanes with."""
        # The classes are private to their instructions; what they hold tells them apart.
        if hasattr(wait, "barriers"):
            barrier = wait.barriers[0]
            offset = next((o for o, b in warp.cta.table.barriers.items() if b is barrier), 0)
            return "mbarrier", f"{self._barrier_name(offset)}, {wait.wanted}", self._steps(barrier)
        if hasattr(wait, "queue"):
            return "group", f"wgmma.wait_group {wait.left}", None
        if hasattr(wait, "cluster"):
            return "barrier", "cluster barrier", self._steps(wait.cluster)
        if hasattr(wait, "generation"):
            return "barrier", f"CTA barrier {wait.index}", self._steps(warp.cta.barriers[wait.index])
        return "wait", wait.describe().split("\n")[0][:80], None

    # --- what it gives ----------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Length of the launch in logical steps; of one that failed a little more, in which all stands still."""
        if self.machine is None:
            return 0
        now = self.machine.monitor.now
        return now + max(now // 20, 1) if self.failed else now

    @property
    def failed(self) -> bool:
        """Did the launch stop before its warps had ended?"""
        return any(not warp.done for cta in self.ctas for warp in cta.warps)

    def spans(self) -> list[Span]:
        """Everything, sorted by start; the spans of one warp follow each other without overlap."""
        spans = list(self._spans)
        for cta in self.ctas:
            for warp in cta.warps:
                spans += self._of_warp(cta.index, warp)
        spans += self._bulk_groups() + self._mma_groups()
        return sorted(spans, key=lambda s: (s.start, s.end, s.cta, s.row, s.label))

    def barrier_rows(self) -> list[str]:
        """Rows of the mbarriers that completed a phase, by their place in shared memory."""
        return sorted(self._offsets, key=self._offsets.__getitem__)

    def _of_warp(self, cta, warp) -> list[Span]:
        key, row, spans = (cta, warp.index), f"warp {warp.index}", []
        waits, slices = self._waits.get(key, []), self._slices.get(key, [])
        at, held = 0, []
        for i, (start, end) in enumerate(slices):
            spans.append(Span(cta, row, "run", "runs", start, end))
            while at < len(waits) and waits[at].step <= end:
                held.append(waits[at])
                at += 1
            last = i + 1 == len(slices)
            if last and warp.done:
                break
            until = self.steps if last else slices[i + 1][0]
            if until <= end:
                continue
            over = end
            if held and held[-1].step == end:
                # The warp gave up its turn because nothing of it could go on. Which wait is it that held it?
                open_ = [(w, self._ends(w, until)) for w in held if w.kind != "lanes"]
                open_ = [(w, x) for w, x in open_ if x > end]
                if open_:
                    wait, over = min(open_, key=lambda p: p[1])
                    spans.append(Span(cta, row, wait.kind, wait.label, end, over))
            if over < until:
                spans.append(Span(cta, row, "ready", "could run", over, until))
            held = [w for w in held if self._ends(w, until) > until or w.kind == "lanes"][-8:]
        return spans

    @staticmethod
    def _ends(wait: _Wait, until: int) -> int:
        """The step at which the wait was over; `until` (the warp's next turn) if it was not by then."""
        if wait.done is None:
            return until
        at = bisect_left(wait.done, wait.step)
        return min(wait.done[at], until) if at < len(wait.done) else until

    def _bulk_groups(self) -> list[Span]:
        spans = []
        for (cta, warp), commits in self._commits.items():
            stores = self._issues.get((cta, warp), [])
            before = -1
            for number, commit in enumerate(sorted(set(commits))):
                group = [s for s in stores if before < s[0] <= commit]
                before = commit
                if group:
                    label = f"bulk group {number} of warp {warp}"
                    spans.append(Span(cta, TMA, "group", label, min(s[0] for s in group), max(s[1] for s in group)))
        return spans

    def _mma_groups(self) -> list[Span]:
        """What one tcgen05.commit stands for: from its first mma to its last arrival."""
        spans = []
        for (cta, warp), commits in sorted(self._mma_commits.items()):
            before = -1
            for number, (commit, end) in enumerate(sorted(commits.items())):
                issues = [x for x in self._mma_issues.get((cta, warp), ()) if before < x <= commit]
                before = commit
                spans.append(Span(cta, TENSOR_CORE, "group", f"group {number}", min(issues, default=commit), end))
        return spans

    def write(self, path: Path) -> None:
        """Writes the JSON file that ui.perfetto.dev and chrome://tracing open."""
        from kgen.emulator.chrome import to_chrome

        Path(path).write_text(json.dumps(to_chrome(self)), encoding="utf-8")
