"""Work that goes on beside the warps: a seeded queue of tasks, each done as late as the scheduler likes.

Tasks of one lane (any hashable) are done in order; lanes go on independently, in random order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

__all__ = ["Pending"]


class Pending:
    """The asynchronous unit of a machine."""

    def __init__(self, machine):
        self.machine = machine
        self.queues: dict[Hashable, deque] = {}
        self.count = 0

    def add(self, task: Callable[[], None], label: str, place: str, lane: Hashable = None) -> None:
        """Queues a task; `place` is the instruction that issued it, for messages."""
        self.count += 1
        key = ("single", self.count) if lane is None else lane
        self.queues.setdefault(key, deque()).append((task, label, place))

    def pending(self) -> bool:
        """Is anything left to do?"""
        return bool(self.queues)

    def step(self, random) -> None:
        """Does one task."""
        key = random.choice(list(self.queues))
        queue = self.queues[key]
        task, label, place = queue.popleft()
        if not queue:
            del self.queues[key]
        self.machine.acting = f"{label} issued at {place}"
        task()
        self.machine.acting = ""
        self.machine.progress += 1

    def cta_ended(self, cta) -> None:
        """A CTA has exited; tasks that still touch it find out when they run."""

    def finish(self) -> None:
        """The grid is done and so are all tasks."""

    def report(self) -> list[str]:
        """Lines of a deadlock report."""
        return []
