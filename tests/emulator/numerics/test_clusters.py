"""Cluster shared addresses, with the numbers that a Hopper card gave."""

import pytest

from kgen.emulator.clusters import getctarank, mapa, offset_of, shared_address
from kgen.errors import EmulatorError


def test_an_own_address_carries_the_rank():
    own = shared_address(2, 0x400)
    assert own == 0x2000400
    assert (getctarank(own), offset_of(own)) == (2, 0x400)
    assert [mapa(own, rank) for rank in range(4)] == [0x400, 0x1000400, 0x2000400, 0x3000400]


def test_impossible_places_are_refused():
    for rank, offset in ((16, 0), (-1, 0), (0, -1), (0, 1 << 24)):
        with pytest.raises(EmulatorError, match="shared address"):
            shared_address(rank, offset)
