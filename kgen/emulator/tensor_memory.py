"""Tensor memory of one SM: storage, allocation, and who wrote and read what. PTX ISA 9.7.16.1, 9.7.16.7.

128 lanes x 512 columns of 32 bits. Ordering is kept per 16 lanes x 1 column, the finest piece that the
instructions' layouts tell apart. Facts and values as in hazards.py: an access is over for whoever knows that
its fact has gone past its value.

Checks: tmem-alloc, tmem-dealloc, tmem-dealloc-in-use, tmem-leak, tmem-out-of-allocation, uninitialised-tmem,
tmem-read-before-commit, tmem-overwritten-in-flight, tmem-missing-wait-ld, tmem-missing-wait-st,
tmem-missing-fence-before, tmem-missing-fence-after.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from kgen.emulator.monitor import Monitor
from kgen.emulator.order import Actor, Order
from kgen.emulator.tmem import COLUMNS, LANES

BLOCK = 16  # lanes


@dataclass(eq=False)
class Queue:
    """The tcgen05 instructions of one thread and cta_group, which execute in order.

    done_fact counts the finished ones, issue_fact those that a later instruction may be ordered behind.
    """

    name: str
    done_fact: int
    issue_fact: int
    issued: int = 0


@dataclass(eq=False)
class _Warp:
    """Stands for the loads or the stores of a warp."""

    actor: Actor
    loads: bool


@dataclass
class Allocation:
    owner: Hashable
    column: int
    count: int


def region(lanes: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """int64, unique: the pieces (block * 512 + column) of arrays of lanes and columns of one shape."""
    return np.unique(np.asarray(lanes) // BLOCK * COLUMNS + columns)


class TensorMemory:
    """`data` is uint32 [128, 512]; `init` tells which words were ever written. Owners are CTAs."""

    def __init__(self, monitor: Monitor, order: Order, name: str = "tensor memory"):
        self.monitor, self.order, self.name = monitor, order, name
        self.data = np.zeros((LANES, COLUMNS), np.uint32)
        self.init = np.zeros((LANES, COLUMNS), bool)
        self.allocations: list[Allocation] = []
        self._taken = np.zeros(COLUMNS, bool)
        self._relinquished: set[Hashable] = set()
        self._least: dict[Hashable, int] = {}
        size = LANES // BLOCK * COLUMNS
        self._writer, self._written = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._reader, self._read = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._who: dict[int, Queue | _Warp] = {}

    # --- allocation -----------------------------------------------------------------------------------

    def alloc(self, owner: Hashable, count: int) -> int | None:
        """`tcgen05.alloc`: the first column, or None while too few are free and the warp must wait.

        Fails tmem-alloc: count not a power of two in 32..512, growing allocations, after relinquish.
        """
        if count not in (32, 64, 128, 256, 512):
            self.monitor.stop("tmem-alloc", f"tcgen05.alloc of {count} columns: a power of two from 32 to 512")
        if owner in self._relinquished:
            self.monitor.fail("tmem-alloc", f"tcgen05.alloc by {owner} after relinquish_alloc_permit")
        least = self._least.get(owner, COLUMNS)
        if count > least:
            text = f"tcgen05.alloc of {count} columns by {owner} after one of {least}: they must not grow"
            self.monitor.fail("tmem-alloc", text)
        for column in range(0, COLUMNS - count + 1, 32):
            if not self._taken[column : column + count].any():
                break
        else:
            if sum(a.count for a in self.allocations if a.owner == owner) + count > COLUMNS:
                text = f"tcgen05.alloc of {count} columns by {owner}, which holds so many that it can never succeed"
                self.monitor.stop("tmem-alloc", text)
            return None
        self._least[owner] = count
        self._taken[column : column + count] = True
        self.init[:, column : column + count] = False
        for array in (self._writer, self._reader):
            array.reshape(-1, COLUMNS)[:, column : column + count] = 0
        self.allocations.append(Allocation(owner, column, count))
        return column

    def dealloc(self, owner: Hashable, address: int, count: int, actor: Actor | None = None) -> None:
        """`tcgen05.dealloc`. Fails: tmem-dealloc (no such allocation), tmem-dealloc-in-use."""
        found = next((a for a in self.allocations if (a.owner, a.column, a.count) == (owner, address, count)), None)
        if found is None:
            held = ", ".join(f"{a.count} columns at {a.column:#x}" for a in self.allocations if a.owner == owner)
            text = f"tcgen05.dealloc of {count} columns at {address:#x} by {owner}, which holds {held or 'nothing'}"
            self.monitor.stop("tmem-dealloc", text)
        if actor is not None:
            self._check_idle(found, actor)
        self.allocations.remove(found)
        self._taken[found.column : found.column + count] = False

    def relinquish(self, owner: Hashable) -> None:
        """`tcgen05.relinquish_alloc_permit`: no allocation by this CTA afterwards."""
        self._relinquished.add(owner)

    def exit(self, owner: Hashable) -> None:
        """The CTA ends. Fails: tmem-leak. What it held is free then, so that others can go on."""
        for a in [a for a in self.allocations if a.owner == owner]:
            self.allocations.remove(a)
            self._taken[a.column : a.column + a.count] = False
            self.monitor.fail("tmem-leak", f"{owner} exits without freeing {a.count} columns at {a.column:#x}")
        self._relinquished.discard(owner)
        self._least.pop(owner, None)

    def _check_idle(self, a: Allocation, actor: Actor) -> None:
        for facts, values in ((self._writer, self._written), (self._reader, self._read)):
            used, last = (x.reshape(-1, COLUMNS)[:, a.column : a.column + a.count] for x in (facts, values))
            for fact in np.unique(used).tolist():
                value = int(last[used == fact].max())
                if fact and actor.known.get(fact) <= value:
                    text = f"tcgen05.dealloc of {a.count} columns at {a.column:#x} by {actor.name}: nothing that it "
                    self.monitor.fail("tmem-dealloc-in-use", f"{text}waited for says that {self._say(fact)} is over")
                    return

    # --- accesses -------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """A new in-order queue of mma, cp and shift."""
        first = self.order.facts(2)
        queue = Queue(name, first, first + 1)
        self._who[first] = queue
        return queue

    def adopt(self, queue: Queue) -> None:
        """A queue of the pair's other CTA touches this memory as well."""
        self._who[queue.done_fact] = queue

    def check_columns(self, pieces: np.ndarray, what: str) -> None:
        """Fails: tmem-out-of-allocation."""
        columns = pieces % COLUMNS
        if pieces.size and (int(pieces.max()) >= self._writer.size or not self._taken[columns].all()):
            free = np.unique(columns[~self._taken[columns]])
            text = f"{what} touches columns {int(free[0])} to {int(free[-1])} of {self.name}" if free.size else what
            held = ", ".join(f"{a.column}..{a.column + a.count - 1}" for a in self.allocations) or "none"
            self.monitor.stop("tmem-out-of-allocation", f"{text}; allocated columns: {held}")

    def check_init(self, index: tuple, what: str) -> None:
        """Fails: uninitialised-tmem. index: (lanes, columns), arrays or slices. Call it when words are read."""
        known = self.init[index]
        if known.all():
            return
        at = np.unravel_index(int(np.argmin(known)), known.shape)
        lane, column = (int(np.broadcast_to(g, self.init.shape)[index][at]) for g in np.ogrid[:LANES, :COLUMNS])
        text = f"{what} reads lane {lane}, column {column} of {self.name}, never written"
        self.monitor.fail("uninitialised-tmem", f"{text} ({int((~known).sum())} words in all)")

    def begin_read(self, pieces: np.ndarray, actor: Actor, what: str, queue: Queue | None = None) -> None:
        """An instruction that reads is issued: by a queue (mma, cp), or by a warp (ld) if queue is None."""
        self._order(self._writer, self._written, pieces, actor, queue, what, "tmem-read-before-commit", "reads")
        self._reader[pieces], self._read[pieces] = self._name(actor, queue, True)

    def begin_write(self, pieces: np.ndarray, actor: Actor, what: str, queue: Queue | None = None) -> None:
        """As `begin_read`, for one that writes (st if queue is None)."""
        check = "tmem-overwritten-in-flight"
        self._order(self._writer, self._written, pieces, actor, queue, what, check, "overwrites")
        self._order(self._reader, self._read, pieces, actor, queue, what, check, "overwrites")
        self._writer[pieces], self._written[pieces] = self._name(actor, queue, False)

    def _name(self, actor: Actor, queue: Queue | None, loads: bool) -> tuple[int, int]:
        """Fact and value of the access that is being issued."""
        if queue is not None:
            return queue.done_fact, queue.issued
        fact, value = (actor.load_fact, actor.loads) if loads else (actor.store_fact, actor.stores)
        if fact not in self._who:
            self._who[fact] = _Warp(actor, loads)
        return fact, value

    def _order(self, facts, values, pieces, actor, queue, what: str, check: str, verb: str) -> None:
        used = facts[pieces]
        if not used.any():
            return
        first = int(used[0])
        for fact in [first] if (used == first).all() else np.unique(used).tolist():
            if fact:
                at = pieces[used == fact]
                self._need(fact, int(values[at].max()), actor, queue, what, check, f"{verb} column {at[0] % COLUMNS}")

    def _need(self, fact, value, actor: Actor, queue: Queue | None, what: str, check: str, verb: str) -> None:
        """The access (fact, value) must come before the one that `actor` issues now."""
        other = self._who[fact]
        known, after = actor.known.get(fact), actor.after.get(fact)
        text = f"{what} by {actor.name} {verb} of {self.name}"
        if isinstance(other, Queue):
            if other is queue:
                return
            if queue is not None and known <= value:
                # Two threads' instructions stay in order without completion if fences and an edge order the issue.
                known, after = actor.known.get(other.issue_fact), actor.after.get(other.issue_fact)
            if known <= value:
                text += f", touched by {self._say(fact)} that is not known to be complete: wait for a tcgen05.commit "
                self.monitor.fail(check, text + "that follows it")
            elif after <= value:
                self._fence("after", text, actor)
            return
        wait, fenced = (
            ("ld", other.actor.load_fenced_fact) if other.loads else ("st", other.actor.store_fenced_fact)
        )
        late = fact if known <= value else fenced
        if other.actor is not actor and actor.known.get(late) <= value < other.actor.held.get(late, 0):
            text += f", of {self._say(fact)}: there one lane arrived without the warp having synchronised (__syncwarp) "
            self.monitor.fail("warp-sync-missing", text + "after the wait and the fence of the other lanes")
        elif known <= value:
            text += f", of {self._say(fact)}, without tcgen05.wait::{wait} there"
            text += "" if other.actor is actor else " and synchronisation after it"
            self.monitor.fail(f"tmem-missing-wait-{wait}", text)
        elif other.actor is not actor:
            if actor.known.get(fenced) <= value:
                self._fence("before", text, other.actor)
            elif after <= value:
                self._fence("after", text, actor)

    def _fence(self, which: str, text: str, actor: Actor) -> None:
        side = "between its wait and the synchronisation" if which == "before" else "after the synchronisation"
        text = f"{text}: {actor.name} executed no tcgen05.fence::{which}_thread_sync {side}"
        self.monitor.fail(f"tmem-missing-fence-{which}", text)

    def _say(self, fact: int) -> str:
        other = self._who.get(fact)
        if isinstance(other, Queue):
            return f"an instruction of {other.name}"
        return f"a tcgen05.{'ld' if other.loads else 'st'} of {other.actor.name}" if other else "an access"
