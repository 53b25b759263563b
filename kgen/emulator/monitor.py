"""What every unit reports to: named checks, the logical clock, and the listeners of a trace.

Time is counted in logical steps, one per instruction or completed asynchronous action; it says what came
before what, not how long it took on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from kgen.errors import EmulatorError

ERROR, WARN, OFF = "error", "warn", "off"

# Checks that are not errors unless asked for: rules of the document that kernels break and still run.
DEFAULT_LEVELS = {
    "async-write-unfenced": WARN,
    "idesc-unusual": WARN,
    "mbarrier-init-unfenced": WARN,
    "swizzle-phase": WARN,
    "warp-mask-exited": WARN,
    "tcgen05-peer-unlaunched": WARN,
    "tmem-missing-fence-before": WARN,
    "tmem-missing-fence-after": WARN,
    "mbarrier-phase-unobserved": OFF,
    "smem-race": OFF,
}


class CheckFailure(EmulatorError):
    """A named check that failed. `check` is its name, `parts` the facts the message was made of."""

    def __init__(self, check: str, message: str, parts: dict):
        self.check = check
        self.parts = parts
        super().__init__(f"{check}: {message}")


class Listener(Protocol):
    """What a trace implements."""

    def on_event(self, kind: str, unit: str, label: str, start: int, end: int) -> None:
        """One thing that lasted from step `start` to step `end` (equal for a moment)."""


@dataclass
class Monitor:
    """Checks, clock and listeners, shared by all units of a launch.

    levels   check name -> "error", "warn" or "off"; names not listed keep their default
    locate   text that places the instruction being executed (its line, its warp), appended to messages
    """

    levels: dict[str, str] = field(default_factory=dict)
    locate: Callable[[], str] | None = None
    listeners: list[Listener] = field(default_factory=list)
    warnings: list[CheckFailure] = field(default_factory=list)
    _warned: set[tuple[str, str]] = field(default_factory=set)
    now: int = 0
    origin: str | None = None  # place of the instruction behind the asynchronous action that runs now

    def tick(self) -> int:
        """Advances the clock by one step; the new time."""
        self.now += 1
        return self.now

    def level(self, check: str) -> str:
        return self.levels.get(check, DEFAULT_LEVELS.get(check, ERROR))

    def fail(self, check: str, message: str, **parts) -> None:
        """Raises CheckFailure, or keeps it in `warnings` (once per place), or neither, by the check's level."""
        level = self.level(check)
        if level == ERROR:
            self.stop(check, message, **parts)
        if level == WARN and (check, self.place() or message) not in self._warned:
            self._warned.add((check, self.place() or message))
            self.warnings.append(self._failure(check, message, parts))

    def place(self) -> str:
        """Where the instruction stands that is being executed, or that issued the running action."""
        return self.origin if self.origin is not None else self.locate() if self.locate else ""

    def stop(self, check: str, message: str, **parts) -> NoReturn:
        """Raises CheckFailure whatever the level, where there is nothing to go on with."""
        raise self._failure(check, message, parts)

    def _failure(self, check: str, message: str, parts: dict) -> CheckFailure:
        where = self.place()
        return CheckFailure(check, f"{message}\n  at {where}" if where else message, parts)

    def event(self, kind: str, unit: str, label: str, start: int, end: int | None = None) -> None:
        """Tells the listeners; `end` is now if left out."""
        for listener in self.listeners:
            listener.on_event(kind, unit, label, start, self.now if end is None else end)
