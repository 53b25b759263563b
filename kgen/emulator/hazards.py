"""Races on the shared memory of one CTA, between generic accesses and the asynchronous units.

Kept per 4-byte word, because that is what one register stores: who wrote it last, who read it last
asynchronously, and how many operations in flight are writing or reading it. "Who" is a fact and a value
(see order.py): whoever knows that the fact has gone past the value has a happens-before edge to the access.

  generic write    fact: the writing thread's proxy fences; value: how many it had executed
  async write      fact: the phases of the barrier it signals; value: the phase
  async read       fact: what its unit counts as finished (a queue, groups); value: its place there

So one rule serves all: an asynchronous access, or any access to what an asynchronous unit touched, needs
known[fact] > value. Operations in flight are found besides that, whatever anybody knows. Races between two
generic accesses are races.py's business, and looked for only if the check smem-race is turned on.

PTX ISA: "Async proxy" and "Memory Consistency Model" (8), fence.proxy.async (9.7.13.4), wgmma and tcgen05
async proxy rules. Checks: async-read-unfenced, async-write-unfenced, smem-read-in-flight,
smem-read-unobserved, smem-overwritten-in-flight, smem-overwritten-unobserved, smem-write-in-flight,
uninitialised-shared, mbarrier-overwritten, smem-out-of-window, warp-sync-missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kgen.emulator.mbarrier import BarrierTable, Shared
from kgen.emulator.monitor import OFF, Monitor
from kgen.emulator.order import WARP, Actor, Facts
from kgen.emulator.races import Races

WORD = 4
_ASYNC = 1  # flags: last written by an asynchronous operation,
_IN = 2  # being written by one,
_OUT = 4  # being read by one,
_READ = 8  # was read by one
_BUSY = _IN | _OUT | _READ
_INIT = np.uint32(0x01010101)  # four initialised bytes


def span(start: int, nbytes: int) -> np.ndarray:
    """int64 words of a byte range."""
    return np.arange(start // WORD, -(-(start + nbytes) // WORD), dtype=np.int64)


def words_of(starts: np.ndarray, nbytes: int) -> np.ndarray:
    """int64 [..., words] of pieces of `nbytes` bytes (1, 2, 4 or more, aligned) at byte addresses `starts`."""
    words = np.asarray(starts, np.int64)[..., None] >> 2
    return words if nbytes <= WORD else words + np.arange(nbytes // WORD)


def _unknown(facts: Facts, used: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """bool [n]: where `facts` has not gone past a value; None if it has everywhere."""
    if not used.size:
        return None
    first = used[0]
    if (used == first).all() and facts.get(first) > values.max():
        return None  # nearly always: one writer, one fact
    unknown = facts.at(used) <= values
    return unknown if unknown.any() else None


@dataclass(eq=False)
class Flight:
    """An asynchronous operation that touches `words` (unique) of one CTA and has not finished."""

    label: str
    words: np.ndarray
    writes: bool
    by: str
    start: int
    done: bool = field(default=False)


class SharedHazards:
    """The tracker of one CTA. All addresses are shared::cta byte offsets; `what` names the instruction."""

    def __init__(self, shared: Shared, monitor: Monitor, barriers: BarrierTable | None = None):
        self.shared, self.monitor, self.barriers = shared, monitor, barriers
        size = shared.bytes.size // WORD
        self._init = shared.init[: size * WORD].view(np.uint32)
        self._flags = np.zeros(size, np.uint8)
        self._writer = np.zeros(size, np.int32)  # facts
        self._written = np.zeros(size, np.int32)  # values
        self._reader = np.zeros(size, np.int32)
        self._read = np.zeros(size, np.int32)
        self._incoming = np.zeros(size, np.int16)  # operations in flight
        self._outgoing = np.zeros(size, np.int16)
        self._flights: list[Flight] = []
        self._names: dict[int, str] = {}  # fact: what it is about, for messages
        self._answers: dict[int, dict[Actor, int]] = {}  # word of an answer: its readers, and their fences then
        self._races = None if monitor.level("smem-race") == OFF else Races(size, shared.rank, monitor)

    # --- generic accesses ---------------------------------------------------------------------------

    def generic_write(
        self, actor: Actor, starts: np.ndarray, nbytes: int, what: str, lanes=None, strong: bool = False
    ) -> None:
        """A warp stores `nbytes` at each of `starts` (byte offsets, one per active lane, in lane order).

        lanes: their numbers, int[n] (all 32 if left out). strong: an atomic or releasing access. Marks the bytes
        as initialised. Fails: smem-overwritten-in-flight, smem-overwritten-unobserved, smem-write-in-flight,
        mbarrier-overwritten, smem-race, warp-sync-missing.
        """
        words = words_of(starts, nbytes)
        if self.barriers is not None and self.barriers.barriers:
            self.barriers.check_write((words * WORD).reshape(-1), what)
        lane = np.arange(WARP)[: len(words)] if lanes is None else np.asarray(lanes)
        flags = self._flags[words]
        if (flags & _BUSY).any():
            self._check_overwrite(words.reshape(-1), actor.known, f"{what} by {actor.name}")
            if actor.alone:
                self._check_alone(actor, lane, words, what)
        if self._races is not None and nbytes >= WORD and not strong:
            self._races.write(actor, words, what)
        # The operations in flight stay, what is known to be over goes.
        self._wrote(actor, words, lane, flags & (_IN | _OUT))
        if nbytes >= WORD:
            self._init[words] = _INIT
        else:
            for i in range(nbytes):
                self.shared.init[starts + i] = True

    def generic_read(
        self, actor: Actor, starts: np.ndarray, nbytes: int, what: str, strong: bool = False
    ) -> None:
        """A warp loads. Fails: smem-read-in-flight, smem-read-unobserved, uninitialised-shared, smem-race."""
        words = words_of(starts, nbytes)
        if self._answers:
            for word in self._answers.keys() & set(words.reshape(-1).tolist()):
                self._answers[word][actor] = actor.epoch
        if self._races is not None and nbytes >= WORD and not strong:
            self._races.read(actor, words, what)
        flags = self._flags[words]
        if flags.any():
            flat, flags = words.reshape(-1), flags.reshape(-1)
            by = f"{what} by {actor.name}"
            incoming = flags & _IN != 0
            if incoming.any():
                self._blame("smem-read-in-flight", flat[incoming][0], True, by, "reads")
            landed = flags & _ASYNC != 0
            self._check_known(flat if landed.all() else flat[landed], actor.known, by)
        # A piece below four bytes may leave the rest of its word unwritten.
        if not (self._init[words] == _INIT).all():
            self._uninitialised(np.asarray(starts)[..., None] + np.arange(nbytes), f"{what} by {actor.name}")

    def quiet_write(self, actor: Actor, starts: np.ndarray, nbytes: int, lane: np.ndarray) -> bool:
        """As `generic_write`, for any number of plain stores of a warp at once, of whole words; False, and nothing is
        done, if one of its checks might have something to say."""
        if self._races is not None or nbytes < WORD or actor.alone:
            return False
        words = words_of(starts, nbytes)
        if self.barriers is not None and self.barriers.barriers and self.barriers.covered[words * WORD].any():
            return False
        flags = self._flags[words]
        if (flags & _BUSY).any():
            read = words[flags & _READ != 0]
            if (flags & (_IN | _OUT)).any() or _unknown(actor.known, self._reader[read], self._read[read]) is not None:
                return False
        self._wrote(actor, words, lane, 0)
        self._init[words] = _INIT
        return True

    def _wrote(self, actor: Actor, words: np.ndarray, lane: np.ndarray, flags) -> None:
        """The lanes are the last writers of their words [lanes, words]."""
        facts = (actor.first + lane).astype(np.int32)
        self._writer[words] = facts[:, None]
        self._written[words] = actor.known.at(facts)[:, None]
        self._flags[words] = flags

    def quiet_read(self, starts: np.ndarray, nbytes: int) -> bool:
        """Whether `generic_read` has nothing to say of loads of whole words."""
        if self._races is not None or nbytes < WORD:
            return False
        words = words_of(starts, nbytes)
        return not self._flags[words].any() and bool((self._init[words] == _INIT).all())

    # --- asynchronous accesses ------------------------------------------------------------------------

    def begin_read(
        self, words: np.ndarray, facts: Facts, label: str, by: str = "", fact: int = 0, value: int = 0,
        generic: bool = False,
    ) -> Flight:  # fmt: skip
        """An operation is issued that will read `words` (unique int64) until `end`.

        facts: what the issuing thread knows. fact, value: the read is over for whoever knows fact > value.
        generic: through the generic proxy, so no proxy fence is needed. Fails: async-read-unfenced,
        smem-read-in-flight, smem-read-unobserved, uninitialised-shared, smem-out-of-window.
        """
        self._inside(words, label)
        flags = self._flags[words]
        incoming = flags & _IN != 0
        if incoming.any():
            self._blame("smem-read-in-flight", words[incoming][0], True, label, "reads")
        landed = flags & _ASYNC != 0
        self._check_known(words[landed], facts, label)
        if not generic:
            self._check_fenced("async-read-unfenced", words[~landed], facts, f"{label} reads")
        if not (self._init[words] == _INIT).all():
            self._uninitialised(words[:, None] * WORD + np.arange(WORD), label)
        flight = Flight(label, words, False, by, self.monitor.now)
        self._outgoing[words] += 1
        self._flags[words] |= _OUT | (_READ if fact else 0)
        if fact:
            self._reader[words] = fact
            self._read[words] = value
        self._flights.append(flight)
        return flight

    def begin_write(self, words: np.ndarray, facts: Facts, label: str, by: str = "", generic: bool = False) -> Flight:
        """An operation is issued that will write `words` (unique) at some time before `landed`.

        Fails: smem-overwritten-in-flight, smem-overwritten-unobserved, smem-write-in-flight,
        async-write-unfenced, mbarrier-overwritten, smem-out-of-window, smem-race.
        """
        self._inside(words, label)
        if self._races is not None:
            self._races.overwrite(words, facts, label)
        if self.barriers is not None:
            self.barriers.check_write(words * WORD, label)
        flags = self._flags[words]
        if (flags & _BUSY).any():
            self._check_overwrite(words, facts, label)
        if not generic:
            self._check_fenced("async-write-unfenced", words[flags & _ASYNC == 0], facts, f"{label} overwrites")
        flight = Flight(label, words, True, by, self.monitor.now)
        self._incoming[words] += 1
        self._flags[words] |= _IN
        self._flights.append(flight)
        return flight

    def landed(self, flight: Flight, fact: int, value: int, name: str = "") -> None:
        """The data of a write is there; readers need fact > value (a barrier's fact and phase)."""
        self.end(flight)
        words = flight.words
        self._writer[words], self._written[words] = fact, value
        self._flags[words] = self._flags[words] & (_IN | _OUT) | _ASYNC
        self._names[fact] = name
        self._initialise(words)

    def landed_generic(self, flight: Flight, actor: Actor, lanes: np.ndarray | int) -> None:
        """The data of a write through the generic proxy (cp.async) is there, as if the threads had stored it.

        lanes: who, for each word of the flight.
        """
        self.end(flight)
        facts = np.broadcast_to(actor.first + np.asarray(lanes, np.int32), flight.words.shape)
        self._writer[flight.words], self._written[flight.words] = facts, actor.known.at(facts)
        self._flags[flight.words] &= _IN | _OUT
        self._initialise(flight.words)

    def end(self, flight: Flight) -> None:
        """The operation no longer touches its words."""
        if flight.done:
            return
        flight.done = True
        self._flights.remove(flight)
        count, bit = (self._incoming, _IN) if flight.writes else (self._outgoing, _OUT)
        count[flight.words] -= 1
        free = flight.words[count[flight.words] == 0]
        self._flags[free] &= np.uint8(0xFF ^ bit)

    @property
    def in_flight(self) -> list[Flight]:
        return list(self._flights)

    def check_lanes(self, actor: Actor, lane: int, words: np.ndarray, what: str) -> None:
        """An asynchronous read that one lane issues alone comes after the writes and fences of the others.

        Fails: warp-sync-missing.
        """
        if not actor.apart:
            return
        who = self._writer[words] - actor.first
        other = (self._flags[words] & _ASYNC == 0) & (who >= 0) & (who < WARP) & (who != lane)
        late = other.copy()
        late[other] = actor.shown[who[other]] <= self._written[words[other]]
        if late.any():
            word = int(words[late][0])
            text = (
                f"{what} is issued by lane {lane} of {actor.name}, but lane {int(who[late][0])} wrote shared "
                f"{word * WORD:#x} and fenced: between that and this the warp must synchronise (__syncwarp)"
            )
            self._fail("warp-sync-missing", text, word)

    def begin_answer(self, words: np.ndarray, facts: Facts, label: str) -> Flight:
        """As begin_write, for an answer of launch control: who has read the one before has fenced since.

        The memory model asks that of every read before an asynchronous write, and public kernels do so here only (CUDA
        Programming Guide, cluster launch control: "release read of result to the async proxy").
        """
        word = int(words[0])
        for actor, epoch in self._answers.get(word, {}).items():
            if int(facts.at(np.arange(actor.first, actor.first + WARP)).max()) <= epoch:
                text = f"{label} overwrites an answer that {actor} has read: after that it must execute "
                text += "fence.proxy.async and then synchronise with the issuing thread"
                self._fail("async-write-unfenced", text, word)
        self._answers[word] = {}
        return self.begin_write(words, facts, label)

    # --- checks ---------------------------------------------------------------------------------------

    def _check_overwrite(self, words: np.ndarray, facts: Facts, what: str) -> None:
        flags = self._flags[words]
        for bit, check, writes in ((_OUT, "smem-overwritten-in-flight", False), (_IN, "smem-write-in-flight", True)):
            hit = flags & bit != 0
            if hit.any():
                self._blame(check, words[hit][0], writes, what, "overwrites")
        read = words[flags & _READ != 0]
        unknown = _unknown(facts, self._reader[read], self._read[read])
        if unknown is not None:
            word = int(read[unknown][0])
            text = f"{what} overwrites shared {word * WORD:#x}, which an asynchronous operation reads; nothing that "
            self._fail("smem-overwritten-unobserved", text + "the writer waited for says that it is finished", word)

    def _check_alone(self, actor: Actor, lane: np.ndarray, words: np.ndarray, what: str) -> None:
        read, reader, value = self._flags[words] & _READ != 0, self._reader[words], self._read[words]
        for fact, (waited, before) in actor.alone.items():
            hit = read & (reader == fact) & (value >= before) & (lane != waited)[:, None]
            if hit.any():
                word, who = int(words[hit][0]), int(lane[hit.any(-1)][0])
                text = (
                    f"{what} by lane {who} of {actor.name} overwrites shared {word * WORD:#x}, whose asynchronous read "
                    f"only lane {waited} has waited for: after that the warp must synchronise (__syncwarp)"
                )
                self._fail("warp-sync-missing", text, word)

    def _check_known(self, words: np.ndarray, facts: Facts, what: str) -> None:
        unknown = _unknown(facts, self._writer[words], self._written[words])
        if unknown is not None:
            word = int(words[unknown][0])
            name = self._names.get(int(self._writer[word]), "")
            wait = f"{name} phase {int(self._written[word])}" if name else "its completion"
            text = f"{what} reads shared {word * WORD:#x}, written asynchronously, without having waited for {wait}"
            self._fail("smem-read-unobserved", text, word)

    def _check_fenced(self, check: str, words: np.ndarray, facts: Facts, what: str) -> None:
        written = words[self._writer[words] != 0]
        if not written.size:
            return
        unknown = _unknown(facts, self._writer[written], self._written[written])
        if unknown is not None:
            word = int(written[unknown][0])
            text = (
                f"{what} shared {word * WORD:#x}, whose last generic write is not ordered before it: the writing "
                f"thread must execute fence.proxy.async and then synchronise with the issuing thread "
                f"({int(unknown.sum()) * WORD} bytes in all)"
            )
            self._fail(check, text, word)

    def _blame(self, check: str, word: int, writes: bool, what: str, verb: str) -> None:
        flight = next((f for f in self._flights if f.writes == writes and word in f.words), None)
        doing = "is still writing" if writes else "still reads"
        name = flight.label if flight else "an asynchronous operation"
        since = f" (issued at step {flight.start})" if flight else ""
        text = f"{what} {verb} shared {int(word) * WORD:#x}, which {name}{since} {doing}"
        self._fail(check, text, int(word), other=name)

    def _uninitialised(self, addresses: np.ndarray, what: str) -> None:
        flat = addresses.reshape(-1)
        bad = flat[~self.shared.init[flat]]
        if bad.size:
            text = f"{what} reads shared {int(bad[0]):#x}, which was never written ({bad.size} bytes in all)"
            self._fail("uninitialised-shared", text, int(bad[0]) // WORD)

    def _inside(self, words: np.ndarray, what: str) -> None:
        if words.size and not 0 <= int(words.min()) <= int(words.max()) < self._flags.size:
            text = f"{what} touches shared {int(words.max()) * WORD:#x} of {self.shared.bytes.size:#x} bytes"
            self.monitor.stop("smem-out-of-window", f"CTA {self.shared.rank}: {text}")

    def _fail(self, check: str, text: str, word: int, **parts) -> None:
        self.monitor.fail(check, f"CTA {self.shared.rank}: {text}", address=word * WORD, **parts)


    def _initialise(self, words: np.ndarray) -> None:
        self._init[words] = _INIT
