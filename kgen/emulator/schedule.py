"""CTAs, clusters and the machine that runs their warps in a seeded order until the grid is done or stuck."""

from __future__ import annotations

import random

import numpy as np

from kgen.emulator.async_units import Agenda, ClusterUnits
from kgen.emulator.bulk import BulkUnit
from kgen.emulator.checks import make_monitor
from kgen.emulator.clc import ClcUnit, LaunchPool
from kgen.emulator.cp_async import CpAsyncUnit
from kgen.emulator.isa.control import NamedBarrier
from kgen.emulator.memory import SharedMemory
from kgen.emulator.monitor import OFF
from kgen.emulator.order import Handover, Meeting
from kgen.emulator.tcgen05 import Tcgen05
from kgen.emulator.tcgen05_io import TmemAccess
from kgen.emulator.tensor_memory import TensorMemory
from kgen.emulator.tma import TmaUnit
from kgen.emulator.warp import Warp
from kgen.errors import EmulatorError

__all__ = ["Cta", "DeadlockError", "Machine"]

_LIMITS = 3  # time limits of try_wait that pass while nothing changes
_PATIENCE = 64  # rounds without any change of state before loops are watched


class DeadlockError(EmulatorError):
    """No warp can move and no asynchronous work is pending; the message says who waits for what."""


class Cluster:
    """CTAs that run at the same time, and their barrier (PTX ISA §9.7.13.4)."""

    def __init__(self):
        self.ctas: list[Cta] = []
        self.generation = 0
        self.arrived: dict[str, int] = {}  # warp -> its lanes that arrived in this generation
        self.meeting, self.handover = Meeting(), Handover()
        self.units: ClusterUnits | None = None

    def equip(self, machine: Machine, size: int) -> None:
        """Gives the cluster its shared memories and asynchronous units."""
        memories = [SharedMemory(machine.shared_bytes, rank) for rank in range(size)]
        self.units = ClusterUnits(memories, machine.memory, machine.agenda)
        self.order = self.units.order
        self.bulk = BulkUnit(self.units)
        self.tma = TmaUnit(self.units, self.bulk)
        self.cp_async = CpAsyncUnit(self.units)
        self.tensor_memories = [TensorMemory(machine.monitor, self.order, f"tensor memory {r}") for r in range(size)]
        self.tcgen05 = Tcgen05(self.units, self.tensor_memories, machine.arithmetic)
        self.clc = ClcUnit(self.units, machine.pool)
        self.alloc_calls: dict[int, list[dict]] = {}

    def complete(self) -> None:
        """Opens the barrier if every live thread of the cluster has arrived."""
        if not self.arrived:
            return
        for cta in self.ctas:
            for warp in cta.warps:
                if warp.live & ~self.arrived.get(warp.name, 0):
                    return
        self.arrived = {}
        self.generation += 1
        self.meeting.complete()
        if self.ctas[0].machine.trace is not None:
            self.ctas[0].machine.trace.cluster_barrier(self)


class Cta:
    """One thread block: shared memory, warps, named barriers. `rank` is its place in its cluster."""

    def __init__(self, machine: Machine, cluster: Cluster, rank: int, index: tuple[int, int, int], sm: int):
        self.machine, self.cluster, self.rank, self.index, self.sm = machine, cluster, rank, index, sm
        self.block = machine.block
        threads = int(np.prod(self.block))
        self.round_threads = -(-threads // 32) * 32
        self.units = cluster.units.ctas[rank]
        self.shared, self.table, self.hazards = self.units.shared, self.units.barriers, self.units.hazards
        self.shared.cta = self
        self.tmem = cluster.tensor_memories[rank]
        self.tmem_access = TmemAccess(self.tmem)
        racing = machine.monitor.level("smem-race") != OFF
        self.shared.guarded = machine.program.asynchronous or racing
        self.barriers = [NamedBarrier() for _ in range(16)]
        self.name = f"CTA ({', '.join(map(str, index))})"
        self.ended = False
        self.warps = [Warp(self, i, machine.program, threads - 32 * i) for i in range(self.round_threads // 32)]

    def warp_ended(self, warp: Warp) -> None:
        """Called when the last lane of a warp has exited."""
        self.cluster.complete()
        self.units.warp_ended(warp.actor)
        self.cluster.bulk.exit(warp.actor)
        self.cluster.cp_async.exit(warp.actor)
        self.tmem_access.exit(warp.actor)
        if warp.warpgroup is not None:
            warp.warpgroup.exit(warp.index % 4)
        if all(w.done for w in self.warps):
            self.ended = True
            self.units.exit()
            self.tmem.exit(self.name)
            self.machine.cta_ended(self)


class Machine:
    """The whole device. `progress` counts changes of state that a waiting warp might see."""

    def __init__(
        self, program, memory, grid, block, cluster, dynamic_shared, sm_count, seed, arithmetic, warn, strict,
        explicit, clc,
    ):  # fmt: skip
        self.program, self.grid, self.block, self.cluster = program, grid, block, cluster
        self.dynamic_shared, self.sm_count, self.arithmetic = dynamic_shared, sm_count, arithmetic
        self.explicit_cluster = explicit
        self.shared_bytes = program.shared_dynamic_at - 1024 + dynamic_shared
        self.memory = memory
        self.random = random.Random(seed)
        self.monitor = make_monitor(warn, strict, self.locate)
        self.running: Warp | None = None
        self.progress = 0
        self.time = 0
        self.resident: list[Cta] = []
        self.instructions = 0
        self.agenda = Agenda(self.monitor, seed)
        self.maps: dict[bytes, object] = {}
        self.members = dict(self._clusters())
        self.pool = LaunchPool(self.members, self.monitor, clc, seed)
        self.expired_at = [-1, 0]
        self.trace = None

    def locate(self) -> str:
        """The instruction being executed, for messages; nothing when an asynchronous unit acts."""
        return self.running.place() if self.running is not None else ""

    # -- grid --------------------------------------------------------------------------------------------
    def _clusters(self) -> list[tuple[tuple[int, int, int], list[tuple[int, int, int]]]]:
        """(ctaid of its first CTA, ctaids by rank) of every cluster, in launch order."""
        gx, gy, gz = self.grid
        cx, cy, cz = self.cluster
        return [
            # Ranks run over x first, as %cluster_ctarank does.
            ((x, y, z), [(x + i, y + j, z + k) for k in range(cz) for j in range(cy) for i in range(cx)])
            for z in range(0, gz, cz)
            for y in range(0, gy, cy)
            for x in range(0, gx, cx)
        ]

    def _start(self) -> None:
        """Starts clusters, in order, while SMs are free."""
        size = int(np.prod(self.cluster))
        while self.pool.waiting and len(self.resident) + size <= self.sm_count:
            self.start_cluster(self.members[self.pool.launch()])

    def start_cluster(self, members) -> None:
        cluster = Cluster()
        cluster.equip(self, len(members))
        used = {c.sm for c in self.resident}
        free = [s for s in range(self.sm_count) if s not in used]
        for rank, index in enumerate(members):
            cta = Cta(self, cluster, rank, index, free[rank])
            cluster.ctas.append(cta)
            self.resident.append(cta)
        if self.trace is not None:
            self.trace.started(cluster)
        self.progress += 1

    def cta_ended(self, cta: Cta) -> None:
        """Frees the SM; the next cluster may start."""
        self.progress += 1
        self.resident.remove(cta)

    def arrived_barrier(self, w, barrier, kind: str) -> None:
        """Hook of bar.sync and bar.arrive for checks and traces."""
        if self.trace is not None:
            self.trace.barrier_arrival(w, barrier)

    def clock(self) -> int:
        """%clock64 and %globaltimer: a count that always grows."""
        self.time += 1
        return self.time * 16

    # -- running -----------------------------------------------------------------------------------------
    def run(self) -> None:
        """Runs the grid to its end. DeadlockError if it cannot get there."""
        with np.errstate(all="ignore"):
            last, still, watching = -1, 0, False
            while True:
                self._start()
                if not self.resident:
                    break
                ran = self._round()
                self.time += 64
                busy = self.agenda.pending()
                if busy and (not ran or self.random.random() < 0.25):
                    self._step()
                    continue
                if not ran and self.resident and not self._movable() and not self._expire():
                    raise DeadlockError(self._deadlock("no warp can move"))
                if self.progress != last:
                    last, still = self.progress, 0
                    if watching:
                        watching = False
                        self._watch(False)
                    continue
                still += 1
                if still > _PATIENCE and busy:
                    self._step()
                elif still > _PATIENCE and not watching:
                    watching = True
                    self._watch(True)
                elif watching and all(w.spinning or not self._can(w) for c in self.resident for w in c.warps):
                    raise DeadlockError(self._deadlock("every warp waits or repeats a loop that changes nothing"))
            self.agenda.drain()
            self.pool.finish()

    def _expire(self) -> bool:
        """Lets blocked try_waits return false, as their time limit would; a few times without any progress."""
        if self.progress != self.expired_at[0]:
            self.expired_at = [self.progress, 0]
        self.expired_at[1] += 1
        if self.expired_at[1] > _LIMITS:
            return False
        found = False
        for cta in self.resident:
            for w in cta.warps:
                for g in w.groups:
                    if g.wait is not None and g.wait[0] == "retry":
                        g.wait[1].expired = found = True
                        w.expired[g.pc] = True
        return found

    def _step(self) -> None:
        """One action of the asynchronous units."""
        self.agenda.step(self.random)
        self.progress += 1

    def _round(self) -> int:
        warps = [w for c in self.resident for w in c.warps if not w.done]
        self.random.shuffle(warps)
        ran = 0
        for w in warps:
            if not w.spinning:
                self.running = w
                start = self.monitor.now
                count = w.run(self.random)
                self.monitor.now = max(self.monitor.now, start + count)  # completions that it forced took steps too
                ran += count
                if self.monitor.listeners and count:
                    self.monitor.event("warp", w.name, "runs", start)
        self.running = None
        self.instructions += ran
        return ran

    def _watch(self, on: bool) -> None:
        for c in self.resident:
            for w in c.warps:
                w.watch, w.spinning = on, False
                w.seen.clear()

    @staticmethod
    def _can(w) -> bool:
        return not w.done and w.pick() is not None

    def _movable(self) -> bool:
        return any(self._can(w) for c in self.resident for w in c.warps)

    # -- messages ----------------------------------------------------------------------------------------
    def _deadlock(self, what: str) -> str:
        lines = [f"deadlock: {what}, and no asynchronous work is pending"]
        for cta in self.resident:
            by_text: dict[str, list[int]] = {}
            for w in cta.warps:
                for g in w.groups:
                    inst = self.program.instructions[g.pc]
                    if g.wait is None:
                        reason = "spins" if w.spinning else "could run"
                    elif g.wait[0] == "sync":
                        missing = g.wait[1] & w.live & ~g.lanes
                        reason = f"lanes {g.lanes:#010x} wait for lanes {missing:#010x} of their warp"
                    else:
                        reason = "waits for " + g.wait[1].describe()
                    text = f"{reason}\n      at {inst.where()}: {inst.text[:120]}"
                    by_text.setdefault(text, []).append(w.index)
            for text, warps in by_text.items():
                lines.append(f"  {cta.name} warp {', '.join(map(str, warps))} {text}")
            ended = [w.index for w in cta.warps if w.done]
            if ended:
                lines.append(f"  {cta.name} warp {', '.join(map(str, ended))} exited")
        if self.pool.waiting:
            lines.append(f"  {len(self.pool.waiting)} clusters have not started ({self.sm_count} SMs are taken)")
        return "\n".join(lines)
