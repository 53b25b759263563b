"""Small stand-ins for what the machine provides: shared memory, a monitor, warps."""

import numpy as np
import pytest

from kgen.emulator.monitor import CheckFailure, Monitor
from kgen.emulator.order import Order


class Shared:
    """Shared memory of one CTA."""

    def __init__(self, size=1 << 16, rank=0, init=False):
        self.bytes = np.zeros(size, np.uint8)
        self.init = np.full(size, init)
        self.rank = rank


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
