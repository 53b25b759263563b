"""Races between warps on the shared memory of one CTA: two generic accesses, one a write, in no order.

Every warp counts the edges that leave it (Actor.clock). A word keeps the warp that wrote it last with the
clock of that moment, and the clock at which each warp read it last; whoever knows less of the other's clock
has no happens-before edge from that access. Lanes of a warp are not told apart, and pieces below a word are
left out: two warps may write the halves of one. Atomic, acquiring, releasing and volatile accesses are what
kernels synchronise with, so they are left out too.

Asynchronous writes over words that a warp has read generically are looked for in the same way.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.monitor import Monitor
from kgen.emulator.order import Actor, Facts

_OWN = np.iinfo(np.int32).max
WORD = 4


class Races:
    """Check: smem-race. `rank`: of the CTA whose memory it is; words are int64 arrays of any shape."""

    def __init__(self, size: int, rank: int, monitor: Monitor):
        self.rank, self.monitor = rank, monitor
        self._slots: dict[Actor, int] = {}
        self._facts = np.zeros(1, np.int64)  # clock fact of each slot; slot 0 is nobody
        self._writer, self._written = np.zeros(size, np.int16), np.zeros(size, np.int32)
        self._read = np.zeros((1, size), np.int32)  # clock + 1

    def read(self, actor: Actor, words: np.ndarray, what: str) -> None:
        """A warp loads words."""
        slot = self._slot(actor)
        self._check_writer(self._clocks(actor.known, slot), words, f"{what} by {actor} reads")
        self._read[slot, words] = actor.clock + 1

    def write(self, actor: Actor, words: np.ndarray, what: str) -> None:
        """A warp stores words."""
        slot = self._slot(actor)
        clocks = self._clocks(actor.known, slot)
        text = f"{what} by {actor} overwrites"
        self._check_writer(clocks, words, text)
        self._check_readers(clocks, words, text)
        self._writer[words], self._written[words] = slot, actor.clock
        self._read[:, words] = 0  # who is ordered behind this write is ordered behind them

    def overwrite(self, words: np.ndarray, facts: Facts, what: str) -> None:
        """A thread that knows `facts` issues an asynchronous write. Of writes before it hazards.py takes care."""
        self._check_readers(self._clocks(facts, 0), words, f"{what} overwrites")
        self._writer[words] = 0
        self._read[:, words] = 0

    def _slot(self, actor: Actor) -> int:
        slot = self._slots.get(actor)
        if slot is None:
            slot = self._slots[actor] = len(self._slots) + 1
            self._facts = np.append(self._facts, actor.clock_fact)
            self._read = np.concatenate([self._read, np.zeros_like(self._read[:1])])
        return slot

    def _clocks(self, facts: Facts, own: int) -> np.ndarray:
        """What is known of each slot's clock."""
        clocks = facts.at(self._facts)
        clocks[own] = clocks[0] = _OWN
        return clocks

    def _check_writer(self, clocks: np.ndarray, words: np.ndarray, text: str) -> None:
        bad = clocks[self._writer[words]] <= self._written[words]
        if bad.any():
            word = int(words[bad][0])
            self._fail(text, word, int(self._writer[word]), "wrote")

    def _check_readers(self, clocks: np.ndarray, words: np.ndarray, text: str) -> None:
        flat = words.reshape(-1)
        bad = self._read[:, flat] > clocks[:, None]
        if bad.any():
            slot, at = (int(x[0]) for x in np.nonzero(bad))
            self._fail(text, int(flat[at]), slot, "read")

    def _fail(self, text: str, word: int, slot: int, verb: str) -> None:
        other = next(a for a, s in self._slots.items() if s == slot)
        text = f"CTA {self.rank}: {text} shared {word * WORD:#x}, which {other} {verb}, with no synchronisation between"
        self.monitor.fail("smem-race", text, address=word * WORD, other=other.name)
