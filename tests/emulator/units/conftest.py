"""Small stand-ins for what the machine provides: shared memory, a monitor, warps."""

import numpy as np
import pytest

from kgen.emulator.async_units import Agenda, ClusterUnits
from kgen.emulator.clusters import shared_address
from kgen.emulator.monitor import CheckFailure, Monitor
from kgen.emulator.order import Order


class Shared:
    """Shared memory of one CTA."""

    def __init__(self, size=1 << 16, rank=0, init=False):
        self.bytes = np.zeros(size, np.uint8)
        self.init = np.full(size, init)
        self.rank = rank


class Global:
    """Global memory from `base` on."""

    base = 1 << 20

    def __init__(self, size=1 << 20):
        self.bytes = np.random.default_rng(1).integers(0, 256, size).astype(np.uint8)

    def _index(self, addresses, nbytes, what):
        index = addresses[:, None] - self.base + np.arange(nbytes)
        assert index.min() >= 0 and index.max() < self.bytes.size, what
        return index

    def gather(self, addresses, nbytes, what):
        return self.bytes[self._index(addresses, nbytes, what)]

    def scatter(self, addresses, data, what):
        self.bytes[self._index(addresses, data.shape[1], what)] = data


class Bench:
    """A cluster of CTAs with everything that a unit needs."""

    def __init__(self, ctas=1, seed=0, init=False, levels=None):
        self.monitor = Monitor(levels or {})
        self.agenda = Agenda(self.monitor, seed)
        self.memory = Global()
        self.units = ClusterUnits([Shared(rank=r, init=init) for r in range(ctas)], self.memory, self.agenda)
        self.warps = [self.units.order.actor(f"warp {i}") for i in range(4)]

    def barrier(self, offset=0, count=1, rank=0):
        return self.units.ctas[rank].barriers.init(offset, count)

    def smem(self, rank=0):
        return self.units.ctas[rank].shared.bytes

    at = staticmethod(shared_address)


@pytest.fixture
def monitor():
    return Monitor()


@pytest.fixture
def order():
    return Order()


@pytest.fixture
def fails():
    """fails("check-name", "part of the text"): a context that must end in that check."""

    def context(check, *parts):
        pattern = "".join(f"(?=[\\s\\S]*{part})" for part in (f"^{check}: ", *parts))
        return pytest.raises(CheckFailure, match=pattern)

    return context
