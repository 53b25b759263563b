"""Cluster barriers, addresses in other CTAs, register budgets. PTX ISA §9.7.13.4, §9.7.9.23-24, §9.7.19.5."""

from __future__ import annotations

import numpy as np

from kgen.emulator.isa.control import gather_all
from kgen.emulator.isa.helpers import nothing, put
from kgen.emulator.memory import RANK_SHIFT, SHARED_WINDOW
from kgen.emulator.operands import Symbol
from kgen.emulator.registry import op
from kgen.emulator.warp import WAIT, bitmask
from kgen.errors import EmulatorError


class _ClusterWait:
    def __init__(self, w, generation):
        self.w, self.cluster, self.generation = w, w.cta.cluster, generation

    def ready(self) -> bool:
        if self.cluster.generation == self.generation:
            return False
        self.cluster.meeting.leave(self.w.actor)
        return True

    def describe(self) -> str:
        missing = [
            f"{w.name} lanes {w.live & ~self.cluster.arrived.get(w.name, 0):#010x}"
            for c in self.cluster.ctas
            for w in c.warps
            if w.live & ~self.cluster.arrived.get(w.name, 0)
        ]
        return f"the cluster barrier; not arrived: {'; '.join(missing[:6])}" + (" ..." if len(missing) > 6 else "")


@op("barrier.cluster.arrive")
def arrive(b, inst, mods):
    mods.flag("release", "relaxed")
    aligned = mods.flag("aligned")

    def fn(w, m):
        held = gather_all(w, m) if aligned else None
        if held:
            return held
        cluster, lanes = w.cta.cluster, bitmask(m)
        if cluster.arrived.get(w.name, 0) & lanes or getattr(w, "cluster_arrived", 0) & lanes:
            raise EmulatorError("barrier.cluster.arrive: these threads arrived already and have not waited since")
        w.cluster_generation = cluster.generation
        w.cluster_arrived = getattr(w, "cluster_arrived", 0) | lanes
        cluster.arrived[w.name] = cluster.arrived.get(w.name, 0) | lanes
        cluster.meeting.arrive(w.actor)
        w.machine.progress += 1
        cluster.complete()
        return None

    return fn


@op("barrier.cluster.wait")
def wait(b, inst, mods):
    mods.flag("acquire")
    aligned = mods.flag("aligned")

    def fn(w, m):
        held = gather_all(w, m) if aligned else None
        if held:
            return held
        lanes = bitmask(m)
        if lanes & ~getattr(w, "cluster_arrived", 0):
            raise EmulatorError("barrier.cluster.wait without barrier.cluster.arrive by the same threads")
        w.cluster_arrived &= ~lanes
        return (WAIT, _ClusterWait(w, w.cluster_generation))

    return fn


@op("mapa")
def mapa(b, inst, mods):
    type_ = mods.last()
    space = mods.choose("shared::cluster")
    d, a, rank = inst.operands
    window = 0
    if space is None and isinstance(a, Symbol):
        window = SHARED_WINDOW
    out, a, rank = b.dst(d, type_), b.src(a, type_), b.src(rank, "u32")
    dtype = np.uint32 if type_ == "u32" else np.uint64
    keep = dtype(0xFFFFFFFF & ~(0xFF << RANK_SHIFT) | (0xFFFFFFFF << 32 if type_ == "u64" else 0))

    def fn(w, m):
        ranks = w.v[rank]
        worst = int((ranks if m is True else ranks[m]).max())
        if worst >= len(w.cta.cluster.ctas):
            raise EmulatorError(f"mapa: rank {worst} of a cluster of {len(w.cta.cluster.ctas)}")
        put(w.v[out], (w.v[a] & keep | ranks.astype(dtype) << dtype(RANK_SHIFT)) + dtype(window), m)

    return fn


@op("getctarank")
def getctarank(b, inst, mods):
    type_ = mods.last()
    mods.choose("shared::cluster")
    d, a = inst.operands
    out, a = b.dst(d, "u32"), b.src(a, type_)
    dtype = np.uint32 if type_ == "u32" else np.uint64
    return lambda w, m: put(w.v[out], w.v[a] >> dtype(RANK_SHIFT) & dtype(0xFF), m)


@op("setmaxnreg.inc", "setmaxnreg.dec")
def setmaxnreg(b, inst, mods):
    mods.last()
    mods.flag("sync", "aligned")
    count = inst.operands[0].value
    if not 24 <= count <= 256 or count % 8:
        raise EmulatorError(f"setmaxnreg {count}: must be 24 to 256 and a multiple of 8")
    grows = "inc" in inst.mods

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        if len(w.cta.warps) < (w.index // 4 + 1) * 4:
            raise EmulatorError("setmaxnreg: the warp is in no whole warpgroup of four warps")
        before = getattr(w, "registers", None)
        if before is not None and (count < before if grows else count > before):
            raise EmulatorError(f"setmaxnreg.{'inc' if grows else 'dec'} {count}, but the warp has {before}")
        w.registers = count
        # Shared by the warpgroup: 128 threads; the register file has 64 K.
        groups = {x.index // 4: getattr(x, "registers", 0) for x in w.cta.warps}
        if sum(groups.values()) * 128 > 65536:
            raise EmulatorError(
                f"setmaxnreg: warpgroups now hold {sorted(groups.values())} registers a thread, over 64 K"
            )

    return fn


@op("griddepcontrol")
def griddepcontrol(b, inst, mods):
    """One grid runs at a time, so that its prerequisites are complete and dependents never start early."""
    mods.flag("wait", "launch_dependents")
    return nothing
