"""Loads and stores of one kind that a straight run of instructions does together (see blocks.py).

Each first makes sure that nothing about them is unusual: all addresses aligned, in one place that may be accessed, no
check that has anything to say. Otherwise the instructions run one by one, as if there were no burst, so that whatever
is wrong is said by the instruction that does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kgen.emulator import fragments
from kgen.emulator.memory import SHARED_BASE

__all__ = ["Access", "burst"]

_or = np.bitwise_or.reduce
_LANES = np.arange(32)


@dataclass(frozen=True)
class Access:
    """A load or store of elements of `dtype`, one per item and lane. `base` and `items` are (view, row) of warp.b;
    `offset` is added to the base, in bytes, wrapping in its type. Items of stores are seen as unsigned types.

    matrices: stmatrix, whose items are words of 8x8 matrices of 16 bits ("trans": transposed).
    """

    store: bool
    space: str  # global or shared (the CTA's own)
    base: tuple[int, int]
    offset: int
    items: tuple[tuple[int, int], ...]
    dtype: np.dtype  # of an element in memory
    matrices: str = ""

    @property
    def key(self):
        """Accesses of one key may form a burst. They have one base register where they are to global memory, so
        that they are likely to lie in one buffer."""
        near = self.base if self.space == "global" else self.base[0]
        return (self.store, self.space, near, tuple(view for view, _ in self.items), self.dtype, self.matrices)

    @property
    def lanes(self) -> int:
        """How many of them give an address."""
        return 8 * len(self.items) if self.matrices else 32

    @property
    def bytes(self) -> int:
        """At each address."""
        return 16 if self.matrices else self.dtype.itemsize * len(self.items)


def burst(accesses: list[Access], instructions: list[tuple[int, Callable]]) -> Callable:
    """fn(warp) that does them all, in order. instructions: (index, closure) of each."""
    reach = _own_shared if accesses[0].space == "shared" else _global
    first = accesses[0]
    move = _store_matrices(accesses) if first.matrices else _store(accesses) if first.store else _load(accesses)
    addresses = _addresses(accesses)
    n, total, store, lanes = len(accesses), first.bytes, first.store, first.lanes
    shift = total.bit_length() - 1

    def fn(w):
        found = addresses(w)[:, :lanes]
        if not int(_or(found, axis=None)) & (total - 1):
            place = reach(w, found, total, store)
            if place is not None:
                memory, index = place
                move(w, memory, index >> shift)
                if store:
                    w.machine.progress += n
                return
        for at, one in instructions:
            w.at = at
            one(w, True)

    return fn


def _rows(places) -> tuple[int, np.ndarray | slice]:
    """(view, rows) of places in one view; a slice where the rows follow each other."""
    view, rows = places[0][0], [row for _, row in places]
    if rows == list(range(rows[0], rows[0] + len(rows))):
        return view, slice(rows[0], rows[0] + len(rows))
    return view, np.array(rows)


def _addresses(accesses: list[Access]):
    """fn(warp) -> [accesses, 32] addresses in the type of their bases."""
    view, rows = _rows([a.base for a in accesses])
    same = all(a.base == accesses[0].base for a in accesses)
    if same:
        rows = slice(accesses[0].base[1], accesses[0].base[1] + 1)
    offsets = {
        t: np.array([a.offset & (1 << 8 * np.dtype(t).itemsize) - 1 for a in accesses], t)[:, None]
        for t in (np.uint32, np.uint64)
    }

    def fn(w):
        bases = w.b[view][rows]
        return bases + offsets[bases.dtype.type]

    return fn


def _global(w, addresses, total: int, store: bool):
    """(memory, byte indices), or None if not all lie in one buffer that may be accessed."""
    memory = w.machine.memory
    if addresses.dtype != np.uint64:
        addresses = addresses.astype(np.uint64)
    low, high = int(addresses.min()), int(addresses.max()) + total
    if not memory.spans(low, high, store):
        return None
    return memory, (addresses - np.uint64(memory.base)).view(np.int64)


def _own_shared(w, addresses, total: int, store: bool):
    """(memory, byte indices), or None if some lie outside or a check wants to look closer."""
    memory = w.cta.shared
    if addresses.dtype != np.uint32:
        addresses = addresses.astype(np.uint32)
    index = (addresses - np.uint32(memory.base)).astype(np.int64)
    if int(index.min()) < SHARED_BASE or int(index.max()) + total > memory.size:
        return None
    if memory.guarded:
        flat = index.reshape(-1)
        lanes = np.broadcast_to(_LANES[: index.shape[1]], index.shape).reshape(-1)
        hazards = w.cta.hazards
        quiet = hazards.quiet_write(w.actor, flat, total, lanes) if store else hazards.quiet_read(flat, total)
        return (memory, index) if quiet else None
    flags = memory.init_rows[total]
    at = index >> (total.bit_length() - 1)
    if store:
        flags[at] = True
    elif not flags[at].all():
        return None
    return memory, index


def _load(accesses: list[Access]):
    size, count = accesses[0].dtype.itemsize, len(accesses[0].items)
    dtype, n = accesses[0].dtype, len(accesses)
    view, rows = _rows([place for a in accesses for place in a.items])

    def move(w, memory, at):
        data = memory.rows[size, count][at].view(dtype)
        w.b[view][rows] = data if count == 1 else data.transpose(0, 2, 1).reshape(n * count, 32)

    return move


def _store_matrices(accesses: list[Access]):
    count, n = len(accesses[0].items), len(accesses)
    view, rows = _rows([place for a in accesses for place in a.items])
    lane, element, _ = fragments.ldmatrix(count, accesses[0].matrices == "trans")

    def move(w, memory, at):
        words = np.ascontiguousarray(w.b[view][rows].reshape(n, count, 32).transpose(0, 2, 1))
        memory.rows[2, 8][at[:, lane], element] = words.view(np.uint16).reshape(n, 32, count, 2)

    return move


def _store(accesses: list[Access]):
    size, count, n = accesses[0].dtype.itemsize, len(accesses[0].items), len(accesses)
    view, rows = _rows([place for a in accesses for place in a.items])

    def move(w, memory, at):
        data = w.b[view][rows]
        memory.rows[size, count][at] = data if count == 1 else data.reshape(n, count, 32).transpose(0, 2, 1)

    return move
