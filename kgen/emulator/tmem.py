"""Where things lie in tensor memory: accumulators, A operands, load/store fragments, copies, scale factors.

Tensor memory has 128 lanes x 512 columns of 32 bits per CTA; an address is lane << 16 | column. All maps
are integer arrays relative to the address that the instruction names.

Sources: PTX ISA 9.7.16.2.3 (data movement shapes), 9.7.16.9 (cp, shift), 9.7.16.10.5 (layouts A-G by name;
their figures are unreadable as text), CUTLASS' TMEM atoms (mma_traits_sm100_frag.hpp, copy_traits_sm100.hpp)
for the formulas, Triton for 16x64b. MMA-Sim's kernels, which run on B200, confirm layouts D and F and the
scale factors of A. That e2m1 occupies bits 5:2 of a byte container is stated for Blackwell's A in tensor
memory by triton-lang/triton PR 10202, and the same as sm_120's mma.sync operands. Inferred: bits 5:0 for the
6-bit types, the lanes of cp.4x256b, zero upper halves of `.unpack::16b`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kgen.errors import EmulatorError

LANES, COLUMNS = 128, 512


def split_address(address: int) -> tuple[int, int]:
    """(lane, column) of a tensor-memory address."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


# --- accumulators and A -----------------------------------------------------------------------------------


def layout_name(m: int, cta_group: int, ws: bool = False, sparse: bool = False) -> str:
    """The document's letter for the D layout. EmulatorError for an M that has none."""
    if ws:
        names = {128: "D", 64: "E", 32: "G"} if cta_group == 1 else {}
    elif cta_group == 1:
        names = {128: "D", 64: "F"}
    else:
        names = {256: "A", 128: "C" if sparse else "B"}
    if m not in names:
        raise EmulatorError(f"tcgen05.mma: no D layout for M = {m}, cta_group::{cta_group}{', .ws' * ws}")
    return names[m]


@dataclass(frozen=True)
class DLayout:
    """D[m, n] lies in CTA `cta[m]` of the pair at lane `lane[m, n]`, column `column[m, n]`. All [M, N]
    except cta [M]; lanes are absolute, columns relative to the column of d-tmem."""

    name: str
    cta: np.ndarray
    lane: np.ndarray
    column: np.ndarray


@lru_cache(maxsize=64)
def d_layout(
    m: int, n: int, cta_group: int, ws: bool = False, sparse: bool = False, lane: int = 0
) -> DLayout:
    """The D layout of an M x N tcgen05.mma. `lane` is the lane field of d-tmem: 0, or 16 in layouts C, F."""
    name = layout_name(m, cta_group, ws, sparse)
    if lane not in ((0, 16) if name in "CF" else (0,)):
        raise EmulatorError(f"tcgen05.mma: d-tmem names lane {lane}; layout {name} cannot start there")
    r, c = np.arange(m)[:, None], np.arange(n)[None, :]
    per_cta = m // cta_group
    row = r % per_cta
    if name in "AD":
        lanes, columns = row, c
    elif name in "CF":
        lanes, columns = 32 * (row // 16) + row % 16 + lane, c
    elif name in "BE":
        lanes, columns = row + 64 * (c >= n // 2), c % (n // 2)
    else:  # G
        lanes, columns = row + 32 * (c // (n // 4)), c % (n // 4)
    lanes, columns = (np.broadcast_to(a, (m, n)) for a in (lanes, columns))
    return DLayout(name, np.arange(m) // per_cta, lanes, columns)


def a_lanes(m: int, cta_group: int, lane: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(cta [M], lane [M, copies]) of the rows of an A operand in tensor memory.

    A row lies in the lane that it has in D. For M = 128 over a pair each CTA needs its 64 rows twice, in
    lanes 0-63 and 64-127. [cutlass: TmemAllocMode::Duplicated]
    """
    layout = d_layout(m, 8, cta_group, lane=lane)
    first = layout.lane[:, :1]
    return layout.cta, np.concatenate([first, first + 64], axis=1) if layout.name == "B" else first


def a_codes(words: np.ndarray, k: int, bits: int, packed: bool = False) -> np.ndarray:
    """Element codes [rows, k] of an A operand from its words, uint32 [rows, columns].

    16-bit: two per word, lower k in the low half; 8-bit: four; tf32: one. 4- and 6-bit elements occupy a
    byte each (see `container_codes`) unless packed (mxf4, mxf4nvf4: eight 4-bit elements per word).
    """
    width = bits if packed or bits >= 8 else 8
    per = 32 // width
    if k % per or words.shape[1] * per < k:
        text = f"{words.shape[1]} columns do not hold {k} {bits}-bit elements"
        raise EmulatorError(f"A in tensor memory: {text}")
    shifts = np.arange(per, dtype=np.uint32) * width
    mask = np.uint32((1 << width) - 1)
    codes = (words[:, : k // per, None].astype(np.uint32) >> shifts & mask).reshape(len(words), k)
    dtype = {16: np.uint16, 32: np.uint32}.get(width, np.uint8)
    return codes.astype(dtype) if width == bits else container_codes(codes.astype(np.uint8), bits)


# --- tcgen05.ld / tcgen05.st ------------------------------------------------------------------------------

# shape: (lanes, registers at .x1, columns at .x1)
LD_SHAPES = {
    "32x32b": (32, 1, 1),
    "16x64b": (16, 1, 2),
    "16x128b": (16, 2, 4),
    "16x256b": (16, 4, 8),
    "16x32bx2": (16, 1, 1),
}


@lru_cache(maxsize=256)
def ld_map(shape: str, num: int, pack16: bool = False, half_split: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of each register of a tcgen05.ld or tcgen05.st, relative to taddr.

    Shapes: [32 threads, registers]; with pack16 (`.pack::16b`, `.unpack::16b`) [32, registers, 2], the
    last axis being the register's low and high half, each one 16-bit element in the low half of its word.
    half_split: immHalfSplitoff of 16x32bx2, in columns. EmulatorError for a shape or count PTX lacks.
    """
    if shape not in LD_SHAPES:
        raise EmulatorError(f"tcgen05.ld/st: shape {shape} does not exist")
    _, registers, _ = LD_SHAPES[shape]
    if num not in (1, 2, 4, 8, 16, 32, 64, 128) or registers * num > 128:
        raise EmulatorError(f"tcgen05.ld/st.{shape}: .x{num} does not exist")
    t, i = np.arange(32)[:, None], np.arange(registers * num)[None, :]
    if shape == "32x32b":
        row, col = t, i
    elif shape == "16x64b":
        row, col = (t >> 2) + 8 * (t & 1), 2 * i + (t >> 1 & 1)
    elif shape == "16x128b":
        row, col = (t >> 2) + 8 * (i & 1), 4 * (i >> 1) + (t & 3)
    elif shape == "16x256b":
        row, col = (t >> 2) + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (t & 3) + (i & 1)
    else:
        row, col = t & 15, i + 0 * t
    row, col = np.broadcast_arrays(row, col)
    if pack16:
        col = 2 * col[..., None] + np.arange(2)
        row = np.broadcast_to(row[..., None], col.shape)
    if shape == "16x32bx2":
        # The immediate stays in columns, packed or not.
        half = (t >> 4) * half_split
        col = col + (half[..., None] if pack16 else half)
    row, col = np.ascontiguousarray(row), np.ascontiguousarray(col)
    row.flags.writeable = col.flags.writeable = False
    return row, col


def check_ld_lane(shape: str, lane: int, warp: int) -> None:
    """Refuse a taddr whose lane is not in the quarter that warp `warp` of the CTA may touch.

    PTX ISA, "Access restrictions": warp w reaches lanes 32*(w%4) .. +31. What the hardware does with other
    lane bits is not documented, so they are refused.
    """
    first = 32 * (warp % 4)
    allowed = (first,) if LD_SHAPES[shape][0] == 32 else (first, first + 16)
    if lane not in allowed:
        lanes = " or ".join(map(str, allowed))
        raise EmulatorError(f"tcgen05.ld/st.{shape}: taddr names lane {lane}, warp {warp} may name {lanes}")


# --- tcgen05.cp -------------------------------------------------------------------------------------------

# shape: (rows, bytes per row)
CP_SHAPES = {
    "128x256b": (128, 32),
    "128x128b": (128, 16),
    "64x128b.warpx2::02_13": (64, 16),
    "64x128b.warpx2::01_23": (64, 16),
    "32x128b.warpx4": (32, 16),
    "4x256b": (4, 32),
}


def cp_lanes(shape: str) -> np.ndarray:
    """Lanes [rows, copies] that each source row of tcgen05.cp goes to. Byte j of a row goes to column
    j // 4, byte j % 4 of the word. The source is a shared-memory descriptor of 1-byte elements."""
    if shape not in CP_SHAPES:
        raise EmulatorError(f"tcgen05.cp: shape {shape} does not exist (known: {', '.join(CP_SHAPES)})")
    r = np.arange(CP_SHAPES[shape][0])[:, None]
    if shape == "64x128b.warpx2::02_13":
        return np.concatenate([r, r + 64], axis=1)
    if shape == "64x128b.warpx2::01_23":
        first = r % 32 + 64 * (r // 32)
        return np.concatenate([first, first + 32], axis=1)
    if shape == "32x128b.warpx4":
        return r + 32 * np.arange(4)
    return 32 * r if shape == "4x256b" else r


def container_bytes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Byte containers of 4- or 6-bit codes: e2m1 in bits 5:2, 6-bit types in bits 5:0."""
    return (codes << 2 if bits == 4 else codes).astype(np.uint8)


def container_codes(data: np.ndarray, bits: int) -> np.ndarray:
    """Codes in byte containers; the inverse of `container_bytes`."""
    return (data >> 2 & 15 if bits == 4 else data & 63).astype(np.uint8)


# --- scale factors ----------------------------------------------------------------------------------------


def scale_atom_offset(row: np.ndarray, block: np.ndarray, blocks: int) -> np.ndarray:
    """Byte offset of the scale of (row, K block) in the global and shared layout that tcgen05.cp expects.

    Atoms of 128 rows x 4 K blocks are 512 bytes, the K block running fastest. [cutlass: SfAtom]
    """
    row, block = np.asarray(row), np.asarray(block)
    atom = (row // 128) * -(-blocks // 4) + block // 4
    return atom * 512 + (row % 32) * 16 + (row % 128 // 32) * 4 + block % 4


@dataclass(frozen=True)
class ScaleLayout:
    """The scales of row x lie in lanes lane[x, :] (all copies must hold them), column column[x] relative to
    the scale operand; one word holds 4 K blocks, block b in byte b. For A, cta[x] owns row x; for B every
    CTA of the pair needs all of N (cta is None)."""

    cta: np.ndarray | None
    lane: np.ndarray
    column: np.ndarray


def scale_a_layout(m: int, cta_group: int) -> ScaleLayout:
    """Scale factors of A. cta_group::2: each CTA holds those of its own rows."""
    if (m, cta_group) not in ((128, 1), (128, 2), (256, 2)):
        raise EmulatorError(f"block-scaled tcgen05.mma: no M = {m} with cta_group::{cta_group}")
    own = np.arange(m) % (m // cta_group)
    return ScaleLayout(np.arange(m) // (m // cta_group), own[:, None] % 32 + 32 * np.arange(4), own // 32)


def scale_b_layout(n: int, m: int, cta_group: int) -> ScaleLayout:
    """Scale factors of B. M = 128 over a pair computes each half of N in its own half of the lanes."""
    x = np.arange(n)
    if cta_group == 2 and m == 128:
        half = n // 2
        lane = x[:, None] % 32 + 64 * (x[:, None] // half) + 32 * np.arange(2)
        return ScaleLayout(None, lane, x % half // 32)
    return ScaleLayout(None, x[:, None] % 32 + 32 * np.arange(4), x // 32)


def scale_bytes(scale_vec: int, scale_id: int) -> list[int]:
    """Bytes of the scale word that an instruction reads, one per block of K in order.

    scale_vec: 1 (1X), 2 (2X) or 4 (4X); scale_id: SFA_ID or SFB_ID.
    """
    if scale_vec not in (1, 2, 4) or not 0 <= scale_id < 4 or scale_id % scale_vec:
        raise EmulatorError(f"scale factors: {scale_vec}X cannot start at byte {scale_id}")
    return list(range(scale_id, scale_id + scale_vec))
