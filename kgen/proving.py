"""Runs a project's own test file in a child process, reads its answers, and ends it when it hangs.

The child prints a JSON object per line: `{"running": case}` when one begins, then
`{"case", "ok", "error", "limit", "seconds", "note"}`; `{"unproven": reason}` where no card fits.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HUNG = 4  # exit code of a test file that gave up waiting for the card
UNPROVEN = 3


@dataclass(frozen=True)
class Case:
    """One answer. `error` may be NaN, and is right where it is at most `limit`."""

    case: str
    ok: bool
    error: float
    limit: float
    seconds: float
    note: str = ""


@dataclass
class Proof:
    """What a test run showed. `running` is the case that had begun and never answered, `unproven` why nothing
    could be shown, `output` the end of what else was printed, `place` where it ran."""

    cases: list[Case] = field(default_factory=list)
    returncode: int | None = None
    running: str = ""
    hung: bool = False
    unproven: str = ""
    output: str = ""
    place: str = "card"  # or emulator

    @property
    def failed(self) -> list[Case]:
        return [c for c in self.cases if not c.ok]

    @property
    def exit_code(self) -> int:
        """0 only where every case answered and was right; 4 hung, 3 unproven, 1 anything else."""
        if self.hung:
            return HUNG
        if self.unproven:
            return UNPROVEN
        right = bool(self.cases) and not self.failed and self.returncode == 0 and not self.running
        return 0 if right else 1

    def to_json(self) -> dict:
        """Plain data; JSON has no NaN, so such an error is null."""
        rows = [vars(c) | {"error": c.error if math.isfinite(c.error) else None} for c in self.cases]
        return {
            "exit_code": self.exit_code,
            "place": self.place,
            "cases": rows,
            "running": self.running,
            "hung": self.hung,
            "unproven": self.unproven,
            "output": self.output,
        }


def prove(test_file: Path, limit_s: float, tell: Callable[[str], None] = lambda text: None) -> Proof:
    """Runs `python <test_file> --json`; `limit_s` of silence count as a hang, and the child is then killed
    with all it started."""
    proof, lines = Proof(), queue.Queue()
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, test_file.name, "--json"],
            cwd=test_file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        reader = threading.Thread(target=_read, args=(child.stdout, lines), daemon=True)
        reader.start()
        try:
            while (line := lines.get(timeout=limit_s)) is not None:
                _take(line, proof, tell)
            child.wait(timeout=limit_s)
        except (queue.Empty, subprocess.TimeoutExpired):
            proof.hung = True
        finally:
            _kill(child)
        proof.returncode = child.returncode
        errors.seek(0)
        proof.output = (proof.output + errors.read().decode(errors="replace"))[-2000:].strip()
    proof.hung = proof.hung or proof.returncode == HUNG
    return proof


def _read(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _take(line: str, proof: Proof, tell: Callable[[str], None]) -> None:
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if isinstance(data, dict) and "running" in data:
        proof.running = str(data["running"])
        tell(f"running {proof.running}")
    elif isinstance(data, dict) and "unproven" in data:
        proof.unproven = str(data["unproven"])
    elif isinstance(data, dict) and "case" in data:
        error, limit = (float("nan") if data.get(k) is None else float(data[k]) for k in ("error", "limit"))
        proof.cases.append(
            Case(
                str(data["case"]),
                data.get("ok") is True,
                error,
                limit,
                float(data.get("seconds") or 0),
                str(data.get("note") or ""),
            )
        )
        if proof.running == data["case"]:
            proof.running = ""
    else:
        proof.output += line


def _kill(child: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=15)  # a process leaves only when the driver has torn its context down
