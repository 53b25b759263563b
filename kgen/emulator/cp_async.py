"""cp.async (4, 8 or 16 bytes per thread), its groups, and its arrival on an mbarrier.

PTX ISA 9.7.9.25.3: the copy is asynchronous but goes through the generic proxy; the data is there for the
issuing thread after its wait, for others after a barrier. Handing it on to TMA or an MMA needs a proxy fence.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.async_units import Action, ClusterUnits
from kgen.emulator.clusters import offset_of
from kgen.emulator.hazards import words_of
from kgen.emulator.order import Actor


class CpAsyncUnit:
    """cp.async of one cluster. Warps act with the lanes that are active: `lanes` are their numbers."""

    def __init__(self, units: ClusterUnits):
        self.units = units
        self.monitor, self.agenda = units.monitor, units.agenda
        self._open: dict[tuple[Actor, int], list[Action]] = {}
        self._groups: dict[tuple[Actor, int], list[list[Action]]] = {}

    def copy(
        self, actor: Actor, lanes: np.ndarray, dst: np.ndarray, src: np.ndarray, nbytes: int, sizes: np.ndarray | int
    ) -> None:
        """`cp.async.ca/cg.shared.global [dst], [src], nbytes, src-size`: one copy per lane.

        dst: shared addresses [n]; src: global addresses [n]; sizes: bytes read, the rest is zero (0: no read,
        also what ignore-src means). Fails: cp-async-alignment and those of SharedHazards.begin_write.
        """
        lanes, dst, src = (np.asarray(a, np.int64) for a in (lanes, dst, src))
        sizes = np.broadcast_to(np.asarray(sizes, np.int64), dst.shape)
        what = f"cp.async of {nbytes} bytes by {actor.name}"
        if nbytes not in (4, 8, 16) or ((dst | src) % nbytes).any() or (sizes > nbytes).any():
            self.monitor.stop("cp-async-alignment", f"{what}: 4, 8 or 16 bytes at multiples of that size")
        cta = self.units.cta_of(int(dst[0]), what)
        starts = dst & (1 << 24) - 1
        words = words_of(starts, nbytes)
        flight = cta.hazards.begin_write(words.reshape(-1), actor.known, what, generic=True)

        def land():
            data = np.zeros((dst.size, nbytes), np.uint8)
            whole = sizes == nbytes
            if whole.any():
                data[whole] = self.units.memory.gather(src[whole], nbytes, what)
            for i in np.flatnonzero(~whole & (sizes > 0)).tolist():
                n = int(sizes[i])
                data[i, :n] = self.units.memory.gather(src[i] + np.arange(n), 1, what)[:, 0]
            cta.shared.bytes[starts[:, None] + np.arange(nbytes)] = data
            cta.hazards.landed_generic(flight, actor, np.repeat(lanes, words.shape[1]))

        action = self.agenda.add("cp.async", actor.name, what, land)
        for lane in lanes.tolist():
            self._open.setdefault((actor, lane), []).append(action)

    def commit(self, actor: Actor, lanes) -> None:
        """`cp.async.commit_group`."""
        for lane in lanes:
            key = (actor, int(lane))
            self._groups.setdefault(key, []).append(self._open.pop(key, []))

    def wait(self, actor: Actor, lanes, n: int) -> None:
        """`cp.async.wait_group n`: completes all but the latest n groups of each lane."""
        due: dict[Action, None] = {}
        for lane in lanes:
            groups = self._groups.get((actor, int(lane)), [])
            done = max(len(groups) - n, 0)
            for group in groups[:done]:
                due.update(dict.fromkeys(group))
            del groups[:done]
        self.agenda.force(due)

    def wait_all(self, actor: Actor, lanes) -> None:
        """`cp.async.wait_all`: commits and waits for everything."""
        self.commit(actor, lanes)
        self.wait(actor, lanes, 0)

    def arrive(self, actor: Actor, lanes, mbar: int, noinc: bool = False) -> None:
        """`cp.async.mbarrier.arrive[.noinc]`: each lane arrives once when its earlier cp.async are done.

        Without noinc the pending count is raised first, so that the arrival is net zero.
        """
        barrier = self.units.cta_of(mbar, "cp.async.mbarrier.arrive").barriers.at(
            offset_of(mbar), "cp.async.mbarrier.arrive", actor
        )
        lanes = [int(lane) for lane in lanes]
        before: dict[Action, None] = {}
        for lane in lanes:
            for group in (*self._groups.get((actor, lane), []), self._open.get((actor, lane), [])):
                before.update(dict.fromkeys(group))
        if not noinc:
            barrier.add_pending(len(lanes))
        facts = actor.release()

        def arrive():
            barrier.learn(facts)
            barrier.arrive(len(lanes), who=f"cp.async of {actor.name}")

        label = f"arrival of cp.async by {actor.name} on {barrier.name}"
        self.agenda.add("cp.async", actor.name, label, arrive, after=before)

    def exit(self, actor: Actor) -> None:
        """The warp ends: what it has not waited for is completed, nobody but the warp could have used it."""
        lanes = sorted({lane for owner, lane in (*self._open, *self._groups) if owner is actor})
        self.wait_all(actor, lanes)
