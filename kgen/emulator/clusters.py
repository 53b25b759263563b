"""Shared-memory addresses of the CTAs of a cluster: offset in the CTA's own memory, and its rank above.

PTX ISA: "mapa", "getctarank", "State spaces" (shared::cta is a sub-window of shared::cluster). The ISA
leaves the numbers open. Measured on an H200: the rank lies in bits 31:24, and the address that a CTA has of
its *own* variables carries its own rank there already (ptxas adds SR_CgaCtaId << 24 to every shared
symbol). So an address of another CTA is made by replacing the rank, never by or-ing one in.
"""

from __future__ import annotations

from kgen.errors import EmulatorError

RANK_SHIFT = 24
RESERVED = 1024  # bytes at offset 0 that the system keeps; the first variable of a kernel lies here
_OFFSET = (1 << RANK_SHIFT) - 1


def shared_address(rank: int, offset: int) -> int:
    """Address of byte `offset` of the CTA with `rank`, as that CTA and all others of the cluster name it."""
    if not 0 <= offset <= _OFFSET or not 0 <= rank < 16:
        raise EmulatorError(f"shared address: no offset {offset:#x} in a CTA with cluster rank {rank}")
    return rank << RANK_SHIFT | offset


def offset_of(address: int) -> int:
    """Byte offset in the memory of the CTA that owns the address."""
    return address & _OFFSET


def getctarank(address: int) -> int:
    """Rank of the CTA that owns a shared::cluster address."""
    return address >> RANK_SHIFT


def mapa(address: int, rank: int) -> int:
    """The address in CTA `rank` that corresponds to `address` in its own CTA."""
    return shared_address(rank, offset_of(address))
