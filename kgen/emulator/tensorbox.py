"""Which bytes a tensor copy moves: box coordinates to global addresses and shared offsets.

PTX ISA, "Tensors" (bounding box, traversal strides, out-of-boundary access) and cp.async.bulk.tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kgen.emulator.swizzle import Swizzle, swizzle
from kgen.errors import EmulatorError


@dataclass(frozen=True)
class Box:
    """One box as n equal units, innermost dimension fastest. A unit is the piece that is never split:
    an element, a byte of two 4-bit elements, or 16 elements of a padded 4/6-bit type.

    addresses   int64[n]  global byte address of each unit (meaningless where outside)
    inside      bool[n]   the unit lies in the tensor; the others read as `fill` and are never stored
    offsets     int64[n]  byte offset in shared memory before the swizzle
    unit_bytes  bytes moved per unit
    shared_bytes  extent in shared memory, padding included
    transaction_bytes  what complete_tx counts. Outside units count too (every public pipeline expects
        constant bytes); padding does not (CUTLASS, DeepGEMM and tile-ai/tilelang PR 2182 expect the
        packed size).
    fill        uint8[unit_bytes], the bytes of a unit outside the tensor
    """

    addresses: np.ndarray
    inside: np.ndarray
    offsets: np.ndarray
    unit_bytes: int
    shared_bytes: int
    transaction_bytes: int
    mode: Swizzle
    fill: np.ndarray

    def shared_addresses(self, destination: int) -> np.ndarray:
        """int64[n]: swizzled shared address of each unit's first byte, for a box placed at `destination`.

        Units never straddle a swizzle chunk, so their bytes are consecutive.
        """
        return swizzle(self.offsets + destination, self.mode)


def _units(dtype) -> tuple[int, int, int]:
    """(elements, global bytes, shared pitch) of a unit."""
    if dtype.is_padded:
        return 16, 16 * dtype.bits // 8, 16
    if dtype.bits < 8:
        return 2, 1, 1
    return 1, dtype.bits // 8, dtype.bits // 8


@lru_cache(maxsize=512)
def _pattern(m):
    """Per dimension: element steps int64[n_d], outermost last; plus the relative global addresses."""
    elements, nbytes, pitch = _units(m.dtype)
    steps = [np.arange(0, m.box_dim[0], elements, dtype=np.int64)]
    # Without interleave, TMA has no traversal stride in dimension 0.
    outer = zip(m.box_dim[1:], m.element_strides[1:], strict=True)
    steps += [np.arange(0, extent, step, dtype=np.int64) for extent, step in outer]
    relative = steps[0] * nbytes // elements
    for step, stride in zip(steps[1:], m.global_strides, strict=True):
        relative = (step[:, None] * stride + relative[None, :]).reshape(-1)
    offsets = np.arange(relative.size, dtype=np.int64) * pitch
    relative.flags.writeable = offsets.flags.writeable = False
    return tuple(steps), relative, offsets


# Measured: the NaN fill is this 16-bit pattern whatever the type, so it repeats in wider elements. It is not
# the canonical NaN that PTX arithmetic makes.
_NAN = 0x7FF7
_TF32_NAN = 0x7FFFE000  # of a converting load


@lru_cache(maxsize=64)
def _fill(dtype, nan: bool) -> np.ndarray:
    nbytes = _units(dtype)[1]
    return np.frombuffer((_NAN.to_bytes(2, "little") if nan else b"\0") * nbytes, np.uint8)[:nbytes]


def _check_coords(m, coords) -> None:
    if len(coords) != m.rank:
        raise EmulatorError(f"tensor copy: {len(coords)} coordinates for a tensor map of rank {m.rank}")
    for c in coords:
        if not -(1 << 31) <= c < 1 << 31:
            raise EmulatorError(f"tensor copy: coordinate {c} is not a 32-bit signed integer")
    if m.interleave:
        raise EmulatorError("tensor copy: interleaved tensor maps are not modelled")
    if m.dtype.is_padded and coords[0] % 128:
        text = f"{coords[0]} is not a multiple of 128, as {m.dtype.name} needs"
        raise EmulatorError(f"tensor copy: coordinate 0: {text}")
    # Not in the PTX text: a start that is not 16-byte aligned is an illegal instruction on the card (measured
    # on an H200; triton-lang/triton issue 7385 reports the same).
    if coords[0] * m.dtype.bits % 128:
        text = f"{coords[0]} x {m.dtype.bits} bits is not a multiple of 16 bytes"
        raise EmulatorError(f"tensor copy: coordinate 0: {text}")


CHUNK_BITS = 128  # what a store cannot split


def tile_box(m, coords: tuple[int, ...], whole_chunks: bool = False) -> Box:
    """The box of a tiled TensorMap `m` at `coords`; see TensorMap.box.

    whole_chunks: dimension 0 ends at the end of its last 16-byte chunk, which is where a store's bounds are.
    """
    _check_coords(m, coords)
    elements, nbytes, _ = _units(m.dtype)
    steps, relative, offsets = _pattern(m)
    base = m.address + coords[0] * nbytes // elements
    base += sum(c * s for c, s in zip(coords[1:], m.global_strides, strict=True))
    sizes = m.global_dim
    if whole_chunks:
        chunks = -(-sizes[0] * m.dtype.bits // CHUNK_BITS)
        sizes = (-(-chunks * CHUNK_BITS // m.dtype.bits), *sizes[1:])
    inside = None
    for c, step, size in zip(coords, steps, sizes, strict=True):
        within = (step + c >= 0) & (step + c < size)
        inside = within if inside is None else (within[:, None] & inside[None, :]).reshape(-1)
    return _box(m, relative + base, inside, offsets)


def gather_box(m, column: int, rows) -> Box:
    """The box of `.tile::gather4` / `.tile::scatter4`: four rows of a 2-D map, placed one after another.

    `m` has rank 2 and box {width, 1}; `rows` are four row coordinates. PTX ISA, "tile::gather4" mode.
    """
    if m.rank != 2 or m.box_dim[1] != 1:
        raise EmulatorError(f"gather4/scatter4 need a 2-D tensor map and a box of 1 row, got {m.box_dim}")
    if len(rows) != 4:
        raise EmulatorError(f"gather4/scatter4 take 4 row coordinates, got {len(rows)}")
    parts = [tile_box(m, (int(column), int(r))) for r in rows]
    addresses = np.concatenate([p.addresses for p in parts])
    inside = np.concatenate([p.inside for p in parts])
    return _box(m, addresses, inside, np.arange(addresses.size, dtype=np.int64) * _units(m.dtype)[2])


def _box(m, addresses, inside, offsets) -> Box:
    _, nbytes, pitch = _units(m.dtype)
    n = addresses.size
    return Box(
        addresses, inside, offsets, nbytes, n * pitch, n * nbytes, m.swizzle, _fill(m.dtype, bool(m.oob_fill))
    )


def loaded_words(dtype_name: str, words: np.ndarray) -> np.ndarray:
    """uint32 words as a load delivers them: both TFLOAT32 types round to tf32; others come back unchanged.

    `dtype_name` is a DataType name. The PTX ISA only says that the type is converted. Measured: rounding is
    to nearest even, past the largest value to infinity; every NaN becomes 0x7FFFE000; and the FTZ types
    keep subnormals in a load.
    """
    words = np.asarray(words, np.uint32)
    if not dtype_name.startswith("TFLOAT32"):
        return words
    magnitude = words & np.uint32(0x7FFFFFFF)
    rounded = (words + 0xFFF + ((words >> 13) & 1)) & np.uint32(0xFFFFE000)
    rounded = np.where(magnitude < 0x7F800000, rounded, words)
    return np.where(magnitude > 0x7F800000, np.uint32(_TF32_NAN), rounded)
