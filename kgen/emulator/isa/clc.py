"""clusterlaunchcontrol. PTX ISA §9.7.13.17, §9.7.13.18."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.mbarriers import active
from kgen.emulator.isa.tma import cluster_address
from kgen.emulator.operands import Sink, Vector
from kgen.emulator.registry import op


@op("clusterlaunchcontrol.try_cancel")
def try_cancel(b, inst, mods):
    mods.flag("async", "shared::cta", "mbarrier::complete_tx::bytes", "b128")
    multicast = mods.flag("multicast::cluster::all")
    (response, _), (bar, _) = b.address(inst.operands[0]), b.address(inst.operands[1])
    what = inst.name

    def fn(w, m):
        for lane in active(m):
            to = cluster_address(w, int(response(w)[lane]), what, False, 16)
            barrier = cluster_address(w, int(bar(w)[lane]), what, False, 8)
            w.cta.cluster.clc.try_cancel(w.actor, to, barrier, multicast)

    return fn


def _words(w, slot: int, lane: int) -> np.ndarray:
    return w.v[slot][lane].view(np.uint32)


@op("clusterlaunchcontrol.query_cancel.is_canceled")
def is_canceled(b, inst, mods):
    mods.flag("pred", "b128")
    out, response = b.dst(inst.operands[0], "pred"), b.quad(inst.operands[1])

    def fn(w, m):
        for lane in active(m):
            w.v[out][lane] = w.cta.cluster.clc.is_canceled(w.actor, _words(w, response, lane))

    return fn


_FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid"


@op(_FIRST, f"{_FIRST}::x", f"{_FIRST}::y", f"{_FIRST}::z")
def first_ctaid(b, inst, mods):
    mods.flag("v4", "b32", "b128")
    d, source = inst.operands
    items = d.items[:3] if isinstance(d, Vector) else (d,)
    outs = [None if isinstance(x, Sink) else b.dst(x, "b32") for x in items]
    axis = "xyz".find(inst.mods[1][-1]) if not isinstance(d, Vector) else 0
    response = b.quad(source)

    def fn(w, m):
        for lane in active(m):
            ctaid = w.cta.cluster.clc.first_ctaid(w.actor, _words(w, response, lane))
            for i, out in enumerate(outs):
                if out is not None:
                    w.v[out][lane] = ctaid[axis + i]

    return fn
