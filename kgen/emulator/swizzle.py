"""Shared-memory swizzles: which physical byte holds a logical byte.

All of them XOR some bits of the *absolute* shared-memory address with higher bits of the same address, so
the phase of the pattern comes from the address and not from the start of the tile. TMA and the tensor
cores use the same functions; that is why a tile that TMA wrote can be read through a descriptor.

PTX ISA: "Tensor swizzling modes" (5.5.7) and the canonical layouts of wgmma and tcgen05. The 16-byte-atom
modes and the 32-byte-atom mode reproduce the tables printed there. The 64-byte-atom mode follows its
table. For the 8-byte flip, the driver documentation says that the two 8-byte halves of every 16 bytes
are swapped in every alternate row; that the *odd* 128-byte rows are the swapped ones is inferred.
"""

from __future__ import annotations

from enum import Enum

import numpy as np


class Swizzle(Enum):
    """A swizzle mode: its name, then (source mask, shift right) pairs whose results are XORed in."""

    NONE = ("none", ())
    B32 = ("32B", ((0x080, 3),))
    B64 = ("64B", ((0x180, 3),))
    B128 = ("128B", ((0x380, 3),))
    B128_ATOM_32B = ("128B, 32B atom", ((0x180, 2),))
    B128_ATOM_32B_FLIP_8B = ("128B, 32B atom, 8B flip", ((0x180, 2), (0x080, 4)))
    B128_ATOM_64B = ("128B, 64B atom", ((0x080, 1),))

    def __init__(self, label: str, terms: tuple[tuple[int, int], ...]):
        self.label = label
        self.terms = terms

    def __str__(self) -> str:
        return self.label

    @property
    def span(self) -> int:
        """Bytes of one row of the pattern; 16 where nothing moves."""
        return {"none": 16, "32B": 32, "64B": 64}.get(self.label, 128)

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats: the alignment at which its phase is zero."""
        if not self.terms:
            return 16
        return 1 << max(mask.bit_length() for mask, _ in self.terms)

    @property
    def chunk(self) -> int:
        """Largest power of two of bytes that always stay together."""
        if not self.terms:
            return 1 << 24
        return min((mask & -mask) >> shift for mask, shift in self.terms)


def swizzle(address, mode: Swizzle):
    """Physical address of a logical shared-memory address, in bytes.

    `address` is an int or an integer array of any shape (shared-window byte addresses); the result has the
    same shape and dtype. Every mode is its own inverse, because the source bits are never changed.
    """
    if not mode.terms:
        return address
    if not isinstance(address, np.ndarray):
        address = int(address)
    result = address
    for mask, shift in mode.terms:
        result = result ^ ((address & mask) >> shift)
    return result
