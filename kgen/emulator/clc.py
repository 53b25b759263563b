"""Cluster launch control: try_cancel and query_cancel. PTX ISA 9.7.13.17, 9.7.13.18.

A response is 16 bytes whose format the document leaves open. Here: words 0-2 are the ctaid of the first CTA of
the cancelled cluster, word 3 is 1; after a failure word 3 is 0 and the rest is a number that is no ctaid.

Success is decided when the request is carried out, as late as the agenda likes, so that the clusters which
start meanwhile are gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from kgen.emulator.async_units import ClusterUnits
from kgen.emulator.clusters import getctarank, offset_of
from kgen.emulator.hazards import span
from kgen.emulator.monitor import Monitor
from kgen.emulator.order import Actor
from kgen.errors import EmulatorError

RESPONSE = 16  # bytes
_NO_CTAID = 0xBAD0C1A1
MODES = ("success", "failure", "random")

Ctaid = tuple[int, int, int]


class LaunchPool:
    """The clusters of a grid that have not started, by the ctaid of their first CTA, in launch order.

    mode: what try_cancel finds while clusters remain. "failure" is legal at any time: a kernel of higher
    priority may be waiting for the SMs.
    """

    def __init__(self, clusters: Iterable[Ctaid], monitor: Monitor, mode: str = "success", seed: int = 0):
        if mode not in MODES:
            raise EmulatorError(f"cluster launch control: mode {mode} is none of {', '.join(MODES)}")
        self.waiting = list(clusters)
        self.monitor, self.mode = monitor, mode
        self.random = random.Random(seed)
        self.launched: list[Ctaid] = []
        self.cancelled: list[Ctaid] = []

    def launch(self) -> Ctaid | None:
        """The machine starts the next cluster; None if there is none left."""
        if not self.waiting:
            return None
        self.launched.append(self.waiting.pop(0))
        return self.launched[-1]

    def cancel(self) -> Ctaid | None:
        """One cluster that will not be started because its work was taken, or None."""
        refused = self.mode == "failure" or (self.mode == "random" and self.random.random() < 0.3)
        if refused or not self.waiting:
            return None
        self.cancelled.append(self.waiting.pop(0))
        return self.cancelled[-1]

    def finish(self) -> None:
        """The grid has ended. Fails clc-unfinished: every cluster must be launched or cancelled, exactly once."""
        if self.waiting:
            text = f"{len(self.waiting)} clusters were neither launched nor cancelled, the first is {self.waiting[0]}"
            self.monitor.fail("clc-unfinished", text)


class ClcUnit:
    """try_cancel of one cluster."""

    def __init__(self, units: ClusterUnits, pool: LaunchPool):
        self.units, self.pool = units, pool
        self.monitor, self.agenda = units.monitor, units.agenda
        self._failed: set[Actor] = set()  # warps that have seen a failure

    def try_cancel(self, actor: Actor, response: int, mbar: int, multicast: bool = False) -> None:
        """`clusterlaunchcontrol.try_cancel.async...mbarrier::complete_tx::bytes[.multicast::cluster::all]`.

        response, mbar: shared::cluster addresses in the issuing CTA. With multicast the response and the 16
        bytes of the barrier go to the same offsets in every CTA of the cluster, so each must expect its own.
        Fails: clc-alignment, clc-after-failure, clc-exited-cta, those of SharedHazards.begin_answer.
        """
        what = f"try_cancel by {actor.name}"
        if response % RESPONSE:
            self.monitor.stop("clc-alignment", f"{what}: response address {response:#x} is not a multiple of 16")
        if getctarank(mbar) != getctarank(response):
            self.monitor.stop("clc-alignment", f"{what}: response and mbarrier lie in different CTAs")
        if actor in self._failed:
            self.monitor.fail("clc-after-failure", f"{what}, after it has observed that a cancel failed")
        targets = self.units.ctas if multicast else [self.units.cta_of(response, what)]
        for cta in targets:
            if cta.barriers.exited:
                self.monitor.fail("clc-exited-cta", f"{what}: CTA {cta.rank} of the cluster has exited")
            cta.barriers.at(offset_of(mbar), what, actor)
        offset, facts = offset_of(response), actor.release()
        flights = [(c, c.hazards.begin_answer(span(offset, RESPONSE), facts, f"{what} (response)")) for c in targets]
        answer: list[np.ndarray] = []
        unit = "cluster launch control"
        decide = self.agenda.add("clc", unit, what, lambda: answer.append(encode(self.pool.cancel())))
        for cta, flight in flights:

            def land(cta=cta, flight=flight):
                cta.shared.bytes[offset : offset + RESPONSE] = answer[0].view(np.uint8)
                barrier = cta.barriers.at(offset_of(mbar), what)
                cta.hazards.landed(flight, barrier.fact, barrier.phase, barrier.name)
                barrier.complete_tx(RESPONSE, facts)

            self.agenda.add("clc", unit, f"{what}: response to CTA {cta.rank}", land, after=(decide,))

    def is_canceled(self, actor: Actor, response: Sequence[int]) -> bool:
        """`query_cancel.is_canceled.pred.b128` of four 32-bit words. Fails: clc-response (it is none)."""
        flag = self._flag(response)
        if not flag:
            self._failed.add(actor)
        return flag

    def first_ctaid(self, actor: Actor, response: Sequence[int]) -> Ctaid:
        """`query_cancel.get_first_ctaid.v4.b32.b128`. Fails: clc-ctaid-of-failure, clc-response."""
        if not self._flag(response):
            text = f"{actor.name} asks for the ctaid of a cancel that failed"
            self.monitor.fail("clc-ctaid-of-failure", text)
        x, y, z = (int(v) for v in response[:3])
        return x, y, z

    def _flag(self, response: Sequence[int]) -> bool:
        flag = int(response[3])
        if flag not in (0, 1) or (flag == 0 and int(response[0]) != _NO_CTAID):
            words = ", ".join(f"{int(w):#x}" for w in response)
            self.monitor.fail("clc-response", f"query_cancel of {words}, which no try_cancel has written")
        return flag == 1


def encode(ctaid: Ctaid | None) -> np.ndarray:
    """uint32 [4] of a response."""
    return np.array([_NO_CTAID] * 3 + [0] if ctaid is None else [*ctaid, 1], np.uint32)
