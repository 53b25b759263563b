"""tcgen05.mma, cp and commit of one cluster: the in-order queue of each issuing thread. PTX ISA 9.7.16.6.

The document promises order only for some pairs of instructions (mma after mma on the same accumulator, mma
after cp, ...); every public kernel relies on all of one thread's executing in issue order, so that is the
default. `strict` keeps only the promised pairs. Instructions complete as late as the agenda likes; commit
arrives on its barriers after them.

tcgen05.shift and .ashift are not modelled: what they do to which rows stands only in a figure.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.async_units import Action, ClusterUnits, CtaUnits
from kgen.emulator.clusters import offset_of
from kgen.emulator.descriptors import K_MAJOR, decode_tcgen05, element_addresses, operand_words, unpack_padded
from kgen.emulator.order import Actor
from kgen.emulator.tcgen05_mma import Mma, MmaOperands, pieces_of_columns
from kgen.emulator.tensor_memory import Queue, TensorMemory
from kgen.emulator.tmem import CP_SHAPES, container_bytes, cp_lanes, split_address
from kgen.errors import EmulatorError

_DECOMPRESS = {"": 8, "b8x16.b4x16_p64": 4, "b8x16.b6x16_p32": 6}


class _Pending:
    """An issued instruction: its place in the queue, its action, and what strict order looks at."""

    __slots__ = ("action", "key", "kind", "number")

    def __init__(self, number: int, kind: str, key: object, action: Action):
        self.number, self.kind, self.key, self.action = number, kind, key, action


class Tcgen05:
    """The tensor core instructions of a cluster. `memories`: the tensor memory of each CTA by rank.

    arithmetic: "exact" or "fast", see mma.mma.
    """

    def __init__(
        self, units: ClusterUnits, memories: list[TensorMemory], arithmetic: str = "exact", strict: bool = False
    ):
        self.units, self.memories, self.arithmetic, self.strict = units, memories, arithmetic, strict
        self.monitor, self.agenda = units.monitor, units.agenda
        self._queues: dict[tuple[Actor, int], Queue] = {}
        self._pending: dict[Queue, list[_Pending]] = {}
        self._commits: dict[Queue, list[Action]] = {}  # the latest commit's arrivals
        self._group = 0  # the cta_group that all instructions must have

    # --- instructions ---------------------------------------------------------------------------------

    def mma(self, actor: Actor, rank: int, cta_group: int, operands: MmaOperands) -> None:
        """`tcgen05.mma[.ws]` by one thread of CTA `rank`.

        Fails: tcgen05-cta-group, idesc-unusual, those of SharedHazards.begin_read for both operands in every
        CTA, those of TensorMemory for D, A and the scales; when it executes uninitialised-tmem, tmem-replicas.
        """
        ctas, memories = self._ctas(rank, cta_group, "tcgen05.mma")
        instruction = Mma(operands, ctas, memories, self.monitor)
        queue, what = self._queue(actor, cta_group), str(instruction)
        flights = []
        for cta in ctas:
            for name in ("A", "B"):
                words = instruction.smem_words(name)
                if words.size:
                    label = f"{what} ({name})"
                    flight = cta.hazards.begin_read(
                        words, actor.known, label, actor.name, queue.done_fact, queue.issued
                    )
                    flights.append((cta, flight))
            if cta.rank != rank:
                cta.touched(queue.done_fact, queue.issued, f"{what} by {actor.name}")
        for i, memory in enumerate(memories):
            for name, pieces in instruction.read_pieces(i):
                memory.check_columns(pieces, f"{what} ({name})")
                memory.begin_read(pieces, actor, f"{what} ({name})", queue)
            pieces = instruction.d_pieces(i)
            memory.check_columns(pieces, f"{what} (D)")
            memory.begin_write(pieces, actor, f"{what} (D)", queue)

        def run():
            instruction.run(self.arithmetic)
            for cta, flight in flights:
                cta.hazards.end(flight)

        d = operands.idesc
        self._issue(actor, queue, "mma", (operands.d, d.m, d.n, d.kind, operands.ws), ctas[0], what, run)

    def cp(self, actor: Actor, rank: int, cta_group: int, shape: str, address: int, desc: int, fmt: str = "") -> None:
        """`tcgen05.cp.<shape>[.<fmt>] [address], desc` by one thread: shared to tensor memory.

        fmt: "" or the decompression "b8x16.b4x16_p64", "b8x16.b6x16_p32". With cta_group::2 each CTA of the
        pair copies from its own shared into its own tensor memory. Fails as `mma`.
        """
        what = f"tcgen05.cp.{shape}"
        if fmt not in _DECOMPRESS:
            raise EmulatorError(f"{what}: format {fmt} does not exist")
        ctas, memories = self._ctas(rank, cta_group, what)
        queue, lanes = self._queue(actor, cta_group), cp_lanes(shape)
        rows, nbytes = CP_SHAPES[shape]
        source = decode_tcgen05(desc)
        words = operand_words(source, rows, nbytes, 1, K_MAJOR)
        base, column = split_address(address)
        if base % 32 or (base and shape != "4x256b"):
            raise EmulatorError(f"{what}: its destination starts at lane 0, not {base}")
        pieces = pieces_of_columns(lanes + base, column, nbytes // 4)
        flights = []
        for cta, memory in zip(ctas, memories, strict=True):
            flight = cta.hazards.begin_read(words, actor.known, what, actor.name, queue.done_fact, queue.issued)
            flights.append((cta, flight))
            if cta.rank != rank:
                cta.touched(queue.done_fact, queue.issued, f"{what} by {actor.name}")
            memory.check_columns(pieces, what)
            memory.begin_write(pieces, actor, what, queue)

        def run():
            at = element_addresses(source, rows, nbytes, 1)
            for (cta, flight), memory in zip(flights, memories, strict=True):
                data = _decompressed(cta.shared.bytes[at], _DECOMPRESS[fmt])
                values = np.ascontiguousarray(data).view(np.uint32)[:, None, :]
                where = (lanes + base)[:, :, None], column + np.arange(nbytes // 4)
                memory.data[where] = values
                memory.init[where] = True
                cta.hazards.end(flight)

        self._issue(actor, queue, "cp.4x256b" if shape == "4x256b" else "cp", None, ctas[0], what, run)

    def shift(self, *args) -> None:
        """`tcgen05.shift`: refused."""
        raise EmulatorError("tcgen05.shift is not modelled: the document shows only in a figure which rows move where")

    def commit(self, actor: Actor, rank: int, cta_group: int, mbar: int, mask: int | None = None) -> None:
        """`tcgen05.commit...mbarrier::arrive::one` by one thread; mask: `.multicast::cluster`.

        mbar: shared::cluster address; with a mask, the same offset in each CTA of it. One arrival on each once
        all earlier mma, cp and shift of the thread (same cta_group) are complete; contains
        fence::before_thread_sync. Fails: tcgen05-cta-group, multicast-cta, those of mbarriers.
        """
        what = f"tcgen05.commit by {actor.name}"
        self._ctas(rank, cta_group, what)
        queue = self._queue(actor, cta_group)
        before = [p.action for p in self._pending[queue]]
        self.fence_before(actor)
        facts = actor.release()
        facts.learn(queue.done_fact, queue.issued)
        offset = offset_of(mbar)
        # Commits of one thread arrive in order: kernels leave the last "stage is free" commit unawaited, because
        # the commit that they do wait for comes after it. The document does not say so, hence not when strict.
        if not self.strict:
            before += self._commits.get(queue, [])
        arrivals = self._commits[queue] = []
        targets = [self.units.cta_of(mbar, what)] if mask is None else self.units.multicast(mask, what)
        for cta in targets:
            barrier = cta.barriers.at(offset, what, actor)
            if cta.rank != rank:
                cta.touched(queue.done_fact, queue.issued - 1, f"{what} on {barrier.name}", barrier)
            label = f"{what} on CTA {cta.rank}"

            def arrive(cta=cta, label=label):
                barrier = cta.barriers.at(offset, label)
                barrier.learn(facts)
                barrier.arrive(1, who=what)

            unit = f"tensor core of CTA {rank}"
            arrivals.append(self.agenda.add("commit", unit, label, arrive, after=before))
            if cta.rank == rank:
                cta.closing = [a for a in cta.closing if not a.done] + arrivals[-1:]

    def fence_before(self, actor: Actor) -> None:
        """`tcgen05.fence::before_thread_sync`: what the thread has issued may be ordered before others'."""
        actor.fence_before()
        for (owner, _), queue in self._queues.items():
            if owner is actor:
                actor.known.learn(queue.issue_fact, queue.issued)

    def fence_after(self, actor: Actor) -> None:
        """`tcgen05.fence::after_thread_sync`."""
        actor.fence_after()

    def idle(self, actor: Actor) -> bool:
        """Nothing that the warp issued is pending."""
        return not any(self._live(q) for (owner, _), q in self._queues.items() if owner is actor)

    # --- queues -----------------------------------------------------------------------------------------

    def _ctas(self, rank: int, cta_group: int, what: str) -> tuple[list[CtaUnits], list[TensorMemory]]:
        if self._group not in (0, cta_group):
            text = f"{what} with cta_group::{cta_group} after cta_group::{self._group}: a kernel must use only one"
            self.monitor.fail("tcgen05-cta-group", text)
        self._group = cta_group
        ranks = [rank] if cta_group == 1 else [rank & ~1, rank | 1]
        ctas = [self.units.cta(r, f"{what} (cta_group::2)") for r in ranks]
        for cta in ctas:
            if cta.barriers.exited:
                self.monitor.fail("tcgen05-peer-exited", f"{what}: CTA {cta.rank} of its pair has exited")
        return ctas, [self.memories[r] for r in ranks]

    def _queue(self, actor: Actor, cta_group: int) -> Queue:
        key = (actor, cta_group)
        if key not in self._queues:
            queue = self.memories[0].queue(f"{actor.name} (cta_group::{cta_group})")
            for memory in self.memories[1:]:
                memory.adopt(queue)
            self._queues[key] = queue
            self._pending[queue] = []
        return self._queues[key]

    def _issue(self, actor: Actor, queue: Queue, kind: str, key, cta: CtaUnits, what: str, run) -> None:
        own = self._live(queue)
        after = [p.action for p in own if not self.strict or _promised(p, kind, key)]
        # Of other threads' instructions, those come first that fences and an edge order before this one.
        for other, pending in self._pending.items():
            if other is not queue:
                ordered = actor.after.get(other.issue_fact)
                after += [p.action for p in pending if p.number < ordered and not p.action.done]
        action = self.agenda.add("mma" if kind == "mma" else "cp", f"tensor core of CTA {cta.rank}", what, run, after)
        own.append(_Pending(queue.issued, kind, key, action))
        queue.issued += 1

    def _live(self, queue: Queue) -> list[_Pending]:
        """What is pending in the queue; forgets the rest."""
        pending = self._pending[queue]
        pending[:] = [p for p in pending if not p.action.done]
        return pending


def _promised(earlier: _Pending, kind: str, key: object) -> bool:
    """Does the document promise that `earlier` executes first? PTX ISA, "Implicitly pipelined instructions"."""
    if kind == "mma":
        return earlier.kind != "mma" or earlier.key == key
    return False


def _decompressed(data: np.ndarray, bits: int) -> np.ndarray:
    """Bytes [rows, n] as they are, or 16-byte groups of padded 4/6-bit elements to a byte container each."""
    if bits == 8:
        return data
    groups = data.reshape(len(data), -1, 16)
    return container_bytes(unpack_padded(groups, bits), bits).reshape(data.shape)
