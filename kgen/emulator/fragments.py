"""Which matrix element each register of each thread holds.

Every map is a pair (row, col) of int64 arrays, so that `matrix[row, col]` fills the registers and
`matrix[row, col] = registers` empties them. Threads are numbered within the warp (32) or the warpgroup
(128). The last axis of a packed map counts the elements of a 32-bit register from its low bits.

Notation: warp w, lane l, group g = l // 4, position c = l % 4.

Sources: PTX ISA, "Matrix Fragments for mma.m16n8k*" (formulas in the text); the wgmma fragments are figures
there and are taken from CUTLASS' CLayout/ALayout, which repeat the mma.sync fragments for each warp's 16
rows; ldmatrix/stmatrix from their text; their b8 forms (m16n16, m8n16, m16n8), of which the text says only which
elements a thread holds, are taken from CUTLASS' copy traits for sm_100.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kgen.errors import EmulatorError

Map = tuple[np.ndarray, np.ndarray]


def _grid(threads: int, *counts: int) -> list[np.ndarray]:
    """Broadcastable index arrays: warp, g, c (each [threads, 1, ...]), then one per register axis."""
    axes = len(counts)
    t = np.arange(threads).reshape(-1, *(1,) * axes)
    out = [t // 32, t % 32 // 4, t % 4]
    for i, n in enumerate(counts):
        out.append(np.arange(n).reshape(*(1,) * (i + 1), n, *(1,) * (axes - 1 - i)))
    return out


def _map(row, col) -> Map:
    row, col = (np.ascontiguousarray(a) for a in np.broadcast_arrays(row, col))
    row.flags.writeable = col.flags.writeable = False
    return row, col


@lru_cache(maxsize=64)
def wgmma_d(n: int, packed: bool = False) -> Map:
    """D of wgmma.m64nNk*: [128, n/2] for f32 and s32; [128, n/4, 2] for f16 (`packed`)."""
    if not 8 <= n <= 256 or n % 8:
        raise EmulatorError(f"wgmma: N = {n}, must be 8..256 in steps of 8")
    if packed:
        w, g, c, i, p = _grid(128, n // 4, 2)
        j, h = i // 2, i % 2
    else:
        w, g, c, i = _grid(128, n // 2)
        j, h, p = i // 4, i // 2 % 2, i % 2
    return _map(16 * w + g + 8 * h, 8 * j + 2 * c + p)


@lru_cache(maxsize=8)
def wgmma_a(bits: int) -> Map:
    """A of wgmma from registers, (row, k): [128, 4, 2] (16-bit), [128, 4, 4] (8-bit), [128, 4, 1] (tf32)."""
    return _a_fragment(128, bits, 4)


def _a_fragment(threads: int, bits: int, registers: int) -> Map:
    per = 32 // bits
    w, g, c, i, p = _grid(threads, registers, per)
    # Odd registers hold the lower eight rows; the second pair the next 16 bytes of K.
    return _map(16 * w + g + 8 * (i % 2), per * c + p + 4 * per * (i // 2))


# (bits, k): 32-bit registers of A; B has half as many. PTX ISA, mma.m16n8k4/k8/k16/k32.
_MMA = {(16, 8): 2, (16, 16): 4, (32, 4): 2, (32, 8): 4, (8, 16): 2, (8, 32): 4}


def _mma_registers(bits: int, k: int) -> int:
    if (bits, k) not in _MMA:
        raise EmulatorError(f"mma.sync.m16n8k{k} with {bits}-bit operands is not covered")
    return _MMA[bits, k]


@lru_cache(maxsize=8)
def mma_a(bits: int, k: int) -> Map:
    """A of mma.sync.m16n8k, (row, k): [32, registers, 32/bits]."""
    return _a_fragment(32, bits, _mma_registers(bits, k))


@lru_cache(maxsize=8)
def mma_b(bits: int, k: int) -> Map:
    """B of mma.sync.m16n8k, (k, n): [32, registers, 32/bits]."""
    per = 32 // bits
    _, g, c, i, p = _grid(32, _mma_registers(bits, k) // 2, per)
    return _map(per * c + p + 4 * per * i, g)


@lru_cache(maxsize=2)
def mma_c(packed: bool = False) -> Map:
    """C and D of mma.sync.m16n8: [32, 4] for f32 and s32; [32, 2, 2] for f16 (`packed`)."""
    if packed:
        _, g, c, i, p = _grid(32, 2, 2)
        return _map(g + 8 * i, 2 * c + p)
    _, g, c, i = _grid(32, 4)
    return _map(g + 8 * (i // 2), 2 * c + i % 2)


@lru_cache(maxsize=8)
def ldmatrix(count: int, transposed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ldmatrix/stmatrix.m8n8.x{count}.b16: (lane, row byte, register) view of the 8x8 matrices.

    Returns (source, element, matrix), int64 [32, count, 2]: register q, half p of a lane holds 16-bit
    element `element` of the 16-byte row whose address lane `source` supplies; `matrix` is q.
    Lanes 8q..8q+7 supply the row addresses of matrix q.
    """
    if count not in (1, 2, 4):
        raise EmulatorError(f"ldmatrix: .x{count} does not exist")
    _, g, c, q, p = _grid(32, count, 2)
    row, col = (2 * c + p, g) if transposed else (g, 2 * c + p)
    source, element, matrix = np.broadcast_arrays(8 * q + row, col, q)
    return tuple(np.ascontiguousarray(a) for a in (source, element, matrix))


def ldmatrix_b8(shape: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(lane that supplies the row, byte of the row), int64 [32, registers, 4], of the b8 forms of ldmatrix and
    stmatrix: m8n16 (as it lies), m16n16 (transposed, two registers a matrix), m16n8 (transposed, stmatrix)."""
    if count not in ((1, 2) if shape == "m16n16" else (1, 2, 4)):
        raise EmulatorError(f"ldmatrix.{shape}: .x{count} does not exist")
    _, g, c, q, p = _grid(32, count * (2 if shape == "m16n16" else 1), 4)
    if shape == "m8n16":
        source, byte = 8 * q + g, 4 * c + p
    elif shape == "m16n8":
        source, byte = 8 * q + 2 * c + p % 2, g + 8 * (p // 2)
    else:
        source, byte = 16 * (q // 2) + 4 * c + 2 * (q % 2) + p % 2, g + 8 * (p // 2)
    source, byte = np.broadcast_arrays(source, byte)
    return np.ascontiguousarray(source), np.ascontiguousarray(byte)


def expand(rows: np.ndarray, source: str) -> np.ndarray:
    """uint8 [..., 16] of 16-byte rows [..., 16] of b8, b4x16_p64 or b6x16_p32 elements: one element a byte, in its
    low bits, the first element from the lowest bits of the row (PTX ISA, "Optional Decompression")."""
    if source == "b8":
        return rows
    bits = 4 if source == "b4x16_p64" else 6
    stream = np.unpackbits(rows, axis=-1, bitorder="little")[..., : 16 * bits]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return (stream.reshape(*rows.shape[:-1], 16, bits) * weights).sum(-1).astype(np.uint8)


def pack(elements: np.ndarray, bits: int) -> np.ndarray:
    """uint32 [...] registers from unsigned codes [..., 32/bits], lowest bits first."""
    shifts = np.arange(32 // bits, dtype=np.uint32) * bits
    return np.bitwise_or.reduce(np.asarray(elements).astype(np.uint32) << shifts, axis=-1)


def unpack(registers: np.ndarray, bits: int) -> np.ndarray:
    """uint32 codes [..., 32/bits] from registers [...]; the inverse of `pack`."""
    shifts = np.arange(32 // bits, dtype=np.uint32) * bits
    mask = np.uint32((1 << bits) - 1)
    return np.asarray(registers, np.uint32)[..., None] >> shifts & mask
