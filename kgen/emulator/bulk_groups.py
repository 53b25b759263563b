"""Groups of asynchronous operations per thread: cp.async.bulk and cp.async commit_group / wait_group.

PTX ISA 9.7.9.25.3 and 9.7.9.26: commit collects the thread's uncommitted operations (possibly none);
wait_group N leaves at most the N most recent groups pending.
"""

from __future__ import annotations

from kgen.emulator.async_units import Action, Agenda
from kgen.emulator.order import Actor, Order


class GroupQueue:
    """The groups of one thread (or of the lanes of a warp that always act together).

    Each operation has a `read` action, after which its source may be reused, and a `finish` action.
    `read_fact` counts the groups whose sources the thread knows to be free.
    """

    def __init__(self, agenda: Agenda, order: Order):
        self.agenda = agenda
        self.read_fact = order.facts(1)
        self.groups: list[list[tuple[Action, Action]]] = []
        self.open: list[tuple[Action, Action]] = []
        self.reads_waited = 0  # groups
        self._forced = {True: 0, False: 0}

    @property
    def number(self) -> int:
        """Of the group that an operation issued now will belong to."""
        return len(self.groups)

    def add(self, read: Action, finish: Action) -> None:
        self.open.append((read, finish))

    def commit(self) -> None:
        self.groups.append(self.open)
        self.open = []

    def wait(self, actor: Actor, n: int, read: bool = False, lane: int | None = None) -> None:
        """Completes all but the latest n groups (read: only their reads), as late as that is allowed.

        lane: the thread, if it waits alone.
        """
        last = max(len(self.groups) - n, 0)
        for group in self.groups[self._forced[read] : last]:
            self.agenda.force(pair[0] if read else pair[1] for pair in group)
        self._forced[read] = max(self._forced[read], last)
        if self.reads_waited < last:
            if lane is not None:
                actor.alone.setdefault(self.read_fact, (lane, self.reads_waited))
            self.reads_waited = last
        actor.known.learn(self.read_fact, self.reads_waited)

    @property
    def unread(self) -> int:
        """Operations whose source reads the thread has not waited for."""
        return len(self.open) + sum(len(g) for g in self.groups[self.reads_waited :])
