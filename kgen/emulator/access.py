"""Where the addresses of a warp's lanes point: bytes of a state space, checked. PTX ISA §5.1, §6.4.1, §9.7.9."""

from __future__ import annotations

import numpy as np

from kgen.emulator.memory import LOCAL_WINDOW, RANK_SHIFT, SHARED_BASE, SHARED_WINDOW, WINDOW_SHIFT
from kgen.errors import EmulatorError

__all__ = ["check_alignment", "places", "shared_offset", "shared_target"]

_LANE = np.arange(32)
_GLOBAL, _SHARED, _LOCAL = 0x70, SHARED_WINDOW >> WINDOW_SHIFT, LOCAL_WINDOW >> WINDOW_SHIFT
_WINDOW = np.uint64(WINDOW_SHIFT)
_LOW = np.uint64((1 << WINDOW_SHIFT) - 1)
_SPACES = {"shared": _SHARED, "shared::cta": _SHARED, "shared::cluster": _SHARED, "local": _LOCAL}


def check_alignment(addresses, size: int, what: str) -> None:
    """Every address must be a multiple of `size` (a power of two)."""
    low = int(np.bitwise_or.reduce(addresses)) & (size - 1)
    if low:
        bad = next(int(a) for a in addresses if int(a) & (size - 1))
        raise EmulatorError(f"{what}: address {bad:#x} is not a multiple of {size}")


def places(w, addresses, mask, size: int, space: str, what: str, write: bool):
    """[(selection, space, memory, byte indices)] of uint64 `addresses`, those of the lanes in `mask`.

    `space` is global, shared..., local, or "" for generic. `memory` has `views`; a selection indexes `addresses`
    (slice(None) when all lie together). For shared memory the third item is the SharedMemory.
    """
    if space == "global":
        return ((_ALL, "global", w.machine.memory, w.machine.memory.indices(addresses, size, what, write)),)
    if space == "":
        windows = addresses >> _WINDOW
        first = int(windows[0])
        if not (windows == windows[0]).all():
            found = []
            lanes = _LANE if mask is True else np.flatnonzero(mask)
            for window in np.unique(windows):
                select = windows == window
                inner = np.zeros(32, bool)
                inner[lanes[select]] = True
                for sub, name, memory, index in places(w, addresses[select], inner, size, "", what, write):
                    whole = np.flatnonzero(select)[sub]
                    found.append((whole, name, memory, index))
            return found
        if first == _GLOBAL:
            return ((_ALL, "global", w.machine.memory, w.machine.memory.indices(addresses, size, what, write)),)
        if first == _SHARED:
            return _shared(w, addresses & _LOW, size, what, cluster=True)
        if first == _LOCAL:
            return _local(w, addresses & _LOW, mask, size, what)
        w.machine.memory.check(int(addresses[0]), size, what)
        raise EmulatorError(f"{what}: {int(addresses[0]):#x} is no generic address")
    if space == "local":
        return _local(w, addresses, mask, size, what)
    return _shared(w, addresses, size, what, cluster=space == "shared::cluster")


_ALL = slice(None)


def _shared(w, addresses, size, what, cluster):
    own = w.cta.shared
    low, high = int(addresses.min()), int(addresses.max()) + size
    if own.base + SHARED_BASE <= low and high <= own.base + own.size:
        return ((_ALL, "shared", own, (addresses - np.uint64(own.base)).view(np.int64)),)
    ranks = addresses >> np.uint64(RANK_SHIFT)
    found = []
    for rank in np.unique(ranks):
        select = ranks == rank
        memory = shared_target(w, int(addresses[select][0]), what, cluster)
        index = (addresses[select] & np.uint64((1 << RANK_SHIFT) - 1)).view(np.int64)
        for i in (int(index.min()), int(index.max())):
            _inside(memory, i, size, what)
        found.append((_ALL if select.all() else np.flatnonzero(select), "shared", memory, index))
    return found


def _inside(memory, offset: int, size: int, what: str) -> None:
    if offset < SHARED_BASE:
        raise EmulatorError(f"{what}: shared offset {offset:#x} lies in the {SHARED_BASE} bytes the system reserves")
    if offset + size > memory.size:
        raise EmulatorError(
            f"{what} of {size} bytes at shared offset {offset:#x} is out of bounds: the CTA has "
            f"{memory.size - SHARED_BASE} bytes, up to {memory.size:#x}"
        )


def shared_target(w, address: int, what: str, cluster: bool = True):
    """The SharedMemory that a 32-bit shared address points into."""
    if address >> 32:
        raise EmulatorError(f"{what}: {address:#x} is not a shared address (a generic one needs cvta.to.shared)")
    rank = address >> RANK_SHIFT
    ctas = w.cta.cluster.ctas
    if rank >= len(ctas):
        raise EmulatorError(f"{what}: {address:#x} names CTA {rank} of a cluster of {len(ctas)}")
    if rank != w.cta.rank and not cluster:
        raise EmulatorError(f"{what}: {address:#x} is in CTA {rank}'s memory, .shared::cta reaches only this CTA's")
    if ctas[rank].ended:
        raise EmulatorError(f"{what}: {address:#x} is in the memory of CTA {rank}, which has exited")
    return ctas[rank].shared


def shared_offset(w, address: int, size: int, what: str, cluster: bool = True) -> tuple:
    """(SharedMemory, offset) of one shared or generic address, checked for `size` bytes."""
    if address >> WINDOW_SHIFT == _SHARED:
        address &= (1 << WINDOW_SHIFT) - 1
    memory = shared_target(w, address, what, cluster)
    offset = address & ((1 << RANK_SHIFT) - 1)
    _inside(memory, offset, size, what)
    return memory, offset


def _local(w, addresses, mask, size, what):
    limit = w.local.shape[1]
    if int(addresses.max()) + size > limit:
        raise EmulatorError(f"{what}: local address {int(addresses.max()):#x} is beyond the frame of {limit} bytes")
    lanes = _LANE if mask is True else np.flatnonzero(mask)
    return ((_ALL, "local", _Local(w), addresses.view(np.int64) + lanes * limit),)


class _Local:
    def __init__(self, w):
        self.views = w.local_views
