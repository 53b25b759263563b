"""Bulk copies without a tensor map, and the groups that all bulk stores belong to.

PTX ISA 9.7.9.25.4 (cp.async.bulk), 9.7.9.25.5 (cp.reduce.async.bulk): sizes and addresses are multiples of
16 bytes; there is no order between copies, not even of one thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kgen.emulator.async_units import ClusterUnits, CtaUnits
from kgen.emulator.bulk_groups import GroupQueue
from kgen.emulator.clusters import getctarank, offset_of
from kgen.emulator.hazards import span
from kgen.emulator.order import Actor
from kgen.emulator.reductions import check, reduce


class BulkUnit:
    """Bulk copies of one cluster, and the bulk groups of its threads."""

    def __init__(self, units: ClusterUnits):
        self.units = units
        self.monitor, self.agenda = units.monitor, units.agenda
        self.groups: dict[tuple[Actor, int], GroupQueue] = {}
        self._home: dict[tuple[Actor, int], int] = {}  # CTA whose memory the thread's stores read

    # --- into shared memory ---------------------------------------------------------------------------

    def load(self, actor: Actor, dst: int, src: int, nbytes: int, mbar: int, *, mask: int | None = None) -> None:
        """`cp.async.bulk.shared::{cta,cluster}.global`: to one CTA, or to those of a multicast mask.

        Fails: bulk-alignment, tma-barrier-cta, multicast-cta, those of SharedHazards.begin_write.
        """
        what = f"bulk load of {nbytes} bytes from {src:#x}"
        self._aligned(what, nbytes, dst, src)
        if getctarank(mbar) != getctarank(dst):
            text = f"{what}: its mbarrier lies in CTA {getctarank(mbar)}, the data in CTA {getctarank(dst)}"
            self.monitor.fail("tma-barrier-cta", text)
        targets = [self.units.cta_of(dst, what)] if mask is None else self.units.multicast(mask, what)
        for cta in targets:
            self._land(actor, cta, offset_of(dst), nbytes, mbar, what, lambda: self._gather(src, nbytes, what))

    def shared_copy(
        self, actor: Actor, dst: int, src: int, nbytes: int, mbar: int, *, op: str = "", kind: str = ""
    ) -> None:
        """`cp.async.bulk.shared::cluster.shared::cta` to another CTA; with op and kind ("add", "u32"),
        `cp.reduce.async.bulk`. The barrier must lie in the destination CTA.

        Fails: bulk-alignment, bulk-destination-cta, tma-barrier-cta, those of both CTAs' memory.
        """
        what = f"bulk {f'reduction .{op}.{kind}' if op else 'copy'} of {nbytes} bytes from shared {src:#x}"
        if op:
            check(op, kind, shared=True)
        self._aligned(what, nbytes, dst, src)
        if getctarank(dst) == getctarank(src):
            self.monitor.fail("bulk-destination-cta", f"{what}: the destination must be another CTA")
        if getctarank(mbar) != getctarank(dst):
            text = f"{what}: its mbarrier lies in CTA {getctarank(mbar)}, the data in CTA {getctarank(dst)}"
            self.monitor.fail("tma-barrier-cta", text)
        source, target = self.units.cta_of(src, what), self.units.cta_of(dst, what)
        reading = source.hazards.begin_read(span(offset_of(src), nbytes), actor.known, what)
        low, to = offset_of(src), offset_of(dst)

        def fetch() -> np.ndarray:
            data = source.shared.bytes[low : low + nbytes].copy()
            source.hazards.end(reading)
            return reduce(op, kind, target.shared.bytes[to : to + nbytes], data) if op else data

        self._land(actor, target, to, nbytes, mbar, what, fetch)

    def _land(self, actor, cta: CtaUnits, offset: int, nbytes: int, mbar: int, what: str, fetch: Callable) -> None:
        label = f"{what} to shared {offset:#x} of CTA {cta.rank}"
        facts = actor.release()
        flight = cta.hazards.begin_write(span(offset, nbytes), facts, label)
        cta.barriers.at(offset_of(mbar), label, actor)

        def land():
            cta.shared.bytes[offset : offset + nbytes] = fetch()
            barrier = cta.barriers.at(offset_of(mbar), label)
            cta.hazards.landed(flight, barrier.fact, barrier.phase, barrier.name)
            barrier.complete_tx(nbytes, facts)

        self.agenda.add("bulk", f"TMA of CTA {cta.rank}", label, land)

    # --- out of shared memory -------------------------------------------------------------------------

    def store(
        self, actor: Actor, lane: int, dst: int, src: int, nbytes: int, *, cp_mask: int | None = None,
        op: str = "", kind: str = "",
    ) -> None:  # fmt: skip
        """`cp.async.bulk.global.shared::cta.bulk_group`, or with op and kind `cp.reduce.async.bulk`.

        cp_mask: 16 bits, bit i writes byte i of every 16. Fails: bulk-alignment, those of begin_read.
        """
        what = f"bulk {f'reduction .{op}.{kind}' if op else 'store'} of {nbytes} bytes to {dst:#x}"
        if op:
            check(op, kind)
        self._aligned(what, nbytes, dst, src)
        cta, low = self.units.cta_of(src, what), offset_of(src)
        data: list[np.ndarray] = []

        def collect():
            data.append(cta.shared.bytes[low : low + nbytes].copy())

        def write():
            if not nbytes:
                return
            new = data[0].reshape(-1, 16)
            at = dst + 16 * np.arange(nbytes // 16, dtype=np.int64)
            if op:
                new = reduce(op, kind, self.units.memory.gather(at, 16, what), new)
            if cp_mask is None:
                self.units.memory.scatter(at, new, what)
                return
            chosen = np.flatnonzero(cp_mask >> np.arange(16) & 1)
            bytes_at = (at[:, None] + chosen).reshape(-1)
            self.units.memory.scatter(bytes_at, new[:, chosen].reshape(-1, 1), what)

        self.store_actions(actor, lane, cta, span(low, nbytes), what, collect, write)

    def store_actions(
        self, actor: Actor, lane: int, cta: CtaUnits, words: np.ndarray, what: str, collect: Callable, write: Callable
    ) -> None:
        """The two steps of any bulk_group operation, added to the thread's open group."""
        queue = self._queue(actor, lane)
        self._home[actor, lane] = cta.rank
        label = f"{what} from {f'shared {int(words[0]) * 4:#x}' if words.size else 'nowhere'} of CTA {cta.rank}"
        unit = f"TMA of CTA {cta.rank}"
        flight = cta.hazards.begin_read(words, actor.known, label, fact=queue.read_fact, value=queue.number)
        cta.hazards.check_lanes(actor, lane, words, label)

        def read():
            collect()
            cta.hazards.end(flight)

        first = self.agenda.add("tma-read", unit, f"{label}: read", read)
        queue.add(first, self.agenda.add("tma", unit, label, write, after=(first,)))

    def commit(self, actor: Actor, lane: int) -> None:
        """`cp.async.bulk.commit_group` by one thread."""
        self._queue(actor, lane).commit()
        self.monitor.event("bulk-commit", actor.name, f"lane {lane}", self.monitor.now)

    def wait(self, actor: Actor, lane: int, n: int, read: bool = False) -> None:
        """`cp.async.bulk.wait_group[.read] n` by one thread; returns when it may go on."""
        self._queue(actor, lane).wait(actor, n, read, lane)

    def exit(self, actor: Actor) -> None:
        """The warp ends. Fails bulk-source-at-exit: its stores' sources must have been read while they live."""
        for (owner, lane), queue in self.groups.items():
            if owner is actor and queue.unread:
                text = f"{actor.name} lane {lane} exits with {queue.unread} bulk store(s) whose source it has not "
                self.monitor.fail("bulk-source-at-exit", text + "waited for (cp.async.bulk.wait_group.read 0)")

    def prefetch(self, src: int, nbytes: int) -> None:
        """`cp.async.bulk.prefetch.L2`: a hint."""
        self._aligned("bulk prefetch", nbytes, src)
        self.monitor.event("bulk", "L2", f"prefetch of {nbytes} bytes at {src:#x}", self.monitor.now)

    def _queue(self, actor: Actor, lane: int) -> GroupQueue:
        key = (actor, lane)
        if key not in self.groups:
            self.groups[key] = GroupQueue(self.agenda, self.units.order)
        return self.groups[key]

    def _gather(self, src: int, nbytes: int, what: str) -> np.ndarray:
        at = src + 16 * np.arange(nbytes // 16, dtype=np.int64)
        return self.units.memory.gather(at, 16, what).reshape(-1) if nbytes else np.zeros(0, np.uint8)

    def _aligned(self, what: str, nbytes: int, *addresses: int) -> None:
        if nbytes % 16 or nbytes < 0 or any(a % 16 for a in addresses):
            places = ", ".join(f"{a:#x}" for a in addresses)
            self.monitor.stop("bulk-alignment", f"{what}: size and addresses ({places}) must be multiples of 16")
