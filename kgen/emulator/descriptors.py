"""Shared-memory matrix descriptors of wgmma and tcgen05: 64 bits to the byte address of every element.

PTX ISA: "Matrix Descriptor Format" (wgmma 9.7.15.5, tcgen05 9.7.16.4.1), "Canonical layouts" (9.7.15.5,
9.7.16.3). The closed forms below are the canonical CuTe layouts; the worked examples printed there
reproduce. The roles of the leading (LBO) and stride (SBO) byte offsets:

  K-major, swizzled     SBO steps 8 rows; LBO is ignored (one instruction never leaves the swizzle row)
  K-major, no swizzle   SBO steps 8 rows, LBO steps 16 bytes of K
  MN-major, swizzled    LBO steps one swizzle row of MN elements, SBO steps 8 k (4 k with the 32-byte atom)
  MN-major, no swizzle  SBO steps 16 bytes of MN elements, LBO steps 8 k

A non-zero base offset moves the phase of the swizzle back by that many 128-byte rows. The documents give
only the formula for choosing it; that wgmma subtracts was measured on an H200 with every value, for a K-major
A. For tcgen05 it is decoded, but refused when addresses are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from kgen.emulator.swizzle import Swizzle, swizzle
from kgen.errors import EmulatorError

K_MAJOR, MN_MAJOR = "K", "MN"

# Codes of the swizzle field. Bits 63:62 for wgmma, 63:61 for tcgen05.
WGMMA_SWIZZLES = {0: Swizzle.NONE, 1: Swizzle.B128, 2: Swizzle.B64, 3: Swizzle.B32}
TCGEN05_SWIZZLES = {
    0: Swizzle.NONE,
    1: Swizzle.B128_ATOM_32B,
    2: Swizzle.B128,
    4: Swizzle.B64,
    6: Swizzle.B32,
}


class DescriptorError(EmulatorError):
    """A malformed or misused descriptor; `problems` names each offending field."""

    def __init__(self, what: str, problems: list[str]):
        self.problems = problems
        super().__init__(f"{what}: " + "; ".join(problems))


@dataclass(frozen=True)
class MatrixDescriptor:
    """A decoded descriptor. `start`, `lbo` and `sbo` are bytes; `start` is a shared-window address."""

    arch: str  # "sm_90" (wgmma) or "sm_100" (tcgen05)
    start: int
    lbo: int
    sbo: int
    swizzle: Swizzle
    base_offset: int = 0
    lbo_absolute: bool = False

    def encode(self) -> int:
        """The 64-bit value. DescriptorError if a field cannot be held."""
        problems = [
            f"{name} {value:#x} is not a multiple of 16 below 2^18"
            for name, value in (("start address", self.start), ("LBO", self.lbo), ("SBO", self.sbo))
            if value % 16 or not 0 <= value < 1 << 18
        ]
        codes = {mode: code for code, mode in _codes(self.arch).items()}
        if self.swizzle not in codes:
            problems.append(f"swizzle {self.swizzle} has no code on {self.arch}")
        if not 0 <= self.base_offset < 8:
            problems.append(f"base offset {self.base_offset} does not fit in 3 bits")
        if problems:
            raise DescriptorError("matrix descriptor", problems)
        word = self.start >> 4 | self.lbo >> 4 << 16 | self.sbo >> 4 << 32 | self.base_offset << 49
        if self.arch == "sm_100":
            return word | 1 << 46 | int(self.lbo_absolute) << 52 | codes[self.swizzle] << 61
        return word | codes[self.swizzle] << 62

    def advanced(self, nbytes: int) -> MatrixDescriptor:
        """The descriptor after adding `nbytes` to its start, the way kernels step along K."""
        return replace(self, start=self.start + nbytes)


def _codes(arch: str) -> dict[int, Swizzle]:
    return TCGEN05_SWIZZLES if arch == "sm_100" else WGMMA_SWIZZLES


def _field(word: int, low: int, high: int) -> int:
    return word >> low & ((1 << (high - low + 1)) - 1)


def _decode(word: int, arch: str, reserved: dict[tuple[int, int], int], code: int) -> MatrixDescriptor:
    problems = []
    for (low, high), expected in reserved.items():
        value = _field(word, low, high)
        if value != expected:
            bits = f"bits {high}:{low}" if high > low else f"bit {low}"
            problems.append(f"{bits} must be {expected:#b}, is {value:#b}")
    if code not in _codes(arch):
        problems.append(f"swizzle code {code} is invalid (valid: {', '.join(map(str, _codes(arch)))})")
    if problems:
        name = "tcgen05" if arch == "sm_100" else "wgmma"
        raise DescriptorError(f"{name} matrix descriptor {word:#018x}", problems)
    return MatrixDescriptor(
        arch,
        _field(word, 0, 13) << 4,
        _field(word, 16, 29) << 4,
        _field(word, 32, 45) << 4,
        _codes(arch)[code],
        _field(word, 49, 51),
        arch == "sm_100" and bool(_field(word, 52, 52)),
    )


def decode_wgmma(word: int) -> MatrixDescriptor:
    """A wgmma descriptor (sm_90a). DescriptorError names every reserved field that is set."""
    word = int(word) & (1 << 64) - 1
    return _decode(word, "sm_90", {(14, 15): 0, (30, 31): 0, (46, 48): 0, (52, 61): 0}, _field(word, 62, 63))


def decode_tcgen05(word: int) -> MatrixDescriptor:
    """A tcgen05 descriptor (sm_100a). DescriptorError names every malformed field.

    The constant in bits 48:46 is the usual slip: a Hopper descriptor has 0 there, not 0b001.
    """
    word = int(word) & (1 << 64) - 1
    reserved = {(14, 15): 0, (30, 31): 0, (46, 48): 1, (53, 60): 0}
    return _decode(word, "sm_100", reserved, _field(word, 61, 63))


def check_operand(desc: MatrixDescriptor, bits: int, major: str, packed: bool = False) -> None:
    """Refuse a majorness and swizzle that the operand's width does not allow.

    `bits` is the width of an element in shared memory (8 for padded 4/6-bit types, 32 for tf32);
    `packed` means two 4-bit elements per byte (kind::mxf4, mxf4nvf4).
    PTX ISA: wgmma "Strides" (MN-major only for 16-bit types); tcgen05 Table 54 (9.7.16.10.3).
    """
    problems = []
    wide_atom = desc.swizzle is Swizzle.B128_ATOM_32B
    if major == MN_MAJOR:
        if desc.arch == "sm_90":
            if bits != 16:
                problems.append(f"MN-major is only for 16-bit types, not {bits}-bit ones")
        elif packed:
            problems.append("MN-major is not available for packed 4-bit types")
        elif bits == 32 and not wide_atom:
            problems.append(f"MN-major tf32 needs the 128B swizzle with 32B atom, not {desc.swizzle}")
        elif bits != 32 and wide_atom:
            problems.append(f"MN-major {bits}-bit types cannot use the 128B swizzle with 32B atom")
    if desc.lbo_absolute and (desc.swizzle is not Swizzle.B128 or major != K_MAJOR or desc.base_offset):
        problems.append("absolute LBO needs the 128B swizzle, K-major and base offset 0")
    if problems:
        raise DescriptorError("matrix descriptor", problems)


@lru_cache(maxsize=256)
def _offsets(mode: Swizzle, lbo: int, sbo: int, rows: int, ks: int, esz: int, major: str) -> np.ndarray:
    """int64 [rows, ks]: unswizzled byte offsets from the start address."""
    r = np.arange(rows, dtype=np.int64)[:, None]
    k = np.arange(ks, dtype=np.int64)[None, :]
    width = mode.span
    if major == K_MAJOR and mode is Swizzle.NONE:
        out = (r % 8) * 16 + (r // 8) * sbo + (k * esz // 16) * lbo + k * esz % 16
    elif major == K_MAJOR:
        out = (r % 8) * width + (r // 8) * sbo + k * esz
    elif mode is Swizzle.NONE:
        per = 16 // esz
        out = (r % per) * esz + (r // per) * sbo + (k % 8) * 16 + (k // 8) * lbo
    else:
        # The 32-byte atom of tf32 is 4 k deep, all others 8 k. [cutlass: Layout_MN_SW128_32B]
        depth = 4 if mode is Swizzle.B128_ATOM_32B else 8
        per = width // esz
        out = (r % per) * esz + (r // per) * lbo + (k % depth) * width + (k // depth) * sbo
    out.flags.writeable = False
    return out


def element_addresses(
    desc: MatrixDescriptor, rows: int, k_elements: int, esz: int, major: str = K_MAJOR
) -> np.ndarray:
    """int64 [rows, k_elements]: absolute shared-memory byte address of each element, swizzled.

    rows: extent along M (operand A) or N (operand B). esz: bytes of an element as stored (1, 2, 4; 16 to
    ask for whole 16-byte chunks along K). Raises DescriptorError for a non-zero base offset with a tcgen05
    swizzle, absolute LBO, or a K extent that leaves the swizzle row.
    """
    problems = []
    if major not in (K_MAJOR, MN_MAJOR):
        raise ValueError(f"major must be {K_MAJOR!r} or {MN_MAJOR!r}")
    if desc.base_offset and desc.swizzle is not Swizzle.NONE and desc.arch != "sm_90":
        problems.append(
            f"base offset {desc.base_offset}: its effect is not established; align the tile to "
            f"{desc.swizzle.period} bytes and use 0"
        )
    if desc.lbo_absolute:
        problems.append("absolute LBO (K of 48 bytes, sm_103a) is not modelled")
    if major == K_MAJOR and desc.swizzle is not Swizzle.NONE and k_elements * esz > desc.swizzle.span:
        problems.append(f"{k_elements * esz} bytes of K exceed the {desc.swizzle} swizzle's row")
    if problems:
        raise DescriptorError("matrix descriptor", problems)
    offsets = _offsets(desc.swizzle, desc.lbo, desc.sbo, rows, k_elements, esz, major)
    linear = offsets + desc.start
    phase = linear - 128 * desc.base_offset
    return linear ^ phase ^ swizzle(phase, desc.swizzle)


def chunk_addresses(
    desc: MatrixDescriptor, rows: int, k_elements: int, esz: int, major: str = K_MAJOR
) -> np.ndarray:
    """int64 [n], ascending: the 16-byte-aligned chunks that reading the operand touches.

    What a race or initialisation check needs. For packed 4-bit data pass bytes of K and esz = 1.
    """
    return np.unique(element_addresses(desc, rows, k_elements, esz, major) & ~15)


@lru_cache(maxsize=4096)
def operand_words(
    desc: MatrixDescriptor, rows: int, k_elements: int, esz: int, major: str = K_MAJOR
) -> np.ndarray:
    """int64 [n], ascending and unique: the 4-byte words (address // 4) of `chunk_addresses`."""
    chunks = chunk_addresses(desc, rows, k_elements, esz, major)
    words = (chunks[:, None] // 4 + np.arange(4)).reshape(-1)
    words.flags.writeable = False
    return words


_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def read_operand(
    memory: np.ndarray,
    desc: MatrixDescriptor,
    rows: int,
    k_elements: int,
    bits: int,
    major: str = K_MAJOR,
    padded: bool = False,
) -> np.ndarray:
    """Element codes [rows, k_elements] of an operand, as uint8 (4, 6, 8 bits), uint16 or uint32.

    memory: uint8 [window], index = shared-window address, length a multiple of 16. bits: width of the
    element type. padded: 16 elements of 4 or 6 bits in the first 8 or 12 of 16 bytes, as kind::f8f6f4 and
    mxf8f6f4 want; otherwise 4-bit elements are packed two per byte, the lower k in the low nibble
    (inferred from CUTLASS' sub-byte order and cvt's e2m1x2; a dot product cannot tell).
    Raises DescriptorError when the operand leaves the window.
    """
    if bits >= 8:
        esz = bits // 8
        at = _inside(memory, element_addresses(desc, rows, k_elements, esz, major), esz)
        return memory.view(_WORDS[esz])[at // esz]
    if not padded:
        if bits != 4 or major != K_MAJOR:
            raise DescriptorError("matrix descriptor", [f"packed {bits}-bit {major}-major has no layout"])
        data = memory[_inside(memory, element_addresses(desc, rows, k_elements // 2, 1), 1)]
        return np.stack([data & 15, data >> 4], axis=-1).reshape(rows, k_elements)
    # A group of 16 elements lies where 16 bytes of an 8-bit type would, along the contiguous axis: K or MN
    # (the latter confirmed on Blackwell, triton-lang/triton PR 5799).
    at = element_addresses(desc, rows, k_elements, 1, major)
    groups = at[:, ::16] if major == K_MAJOR else at[::16].T
    chunks = memory[_inside(memory, groups, 16)[..., None] + np.arange(16)]
    codes = unpack_padded(chunks, bits).reshape(groups.shape[0], -1)
    return codes if major == K_MAJOR else np.ascontiguousarray(codes.T)


def unpack_padded(chunks: np.ndarray, bits: int) -> np.ndarray:
    """uint8 [..., 16] codes from uint8 [..., 16] bytes holding 16 elements of 4 or 6 bits, then padding.

    Element i occupies bits [bits*i, bits*i + bits) of the little-endian group. PTX ISA, "Packing formats"
    (16U4_ALIGN16B, 16U6_ALIGN16B).
    """
    position = np.arange(16) * bits
    low, shift = position // 8, (position % 8).astype(np.uint16)
    pair = chunks[..., low].astype(np.uint16) | chunks[..., low + 1].astype(np.uint16) << 8
    return (pair >> shift & ((1 << bits) - 1)).astype(np.uint8)


def _inside(memory: np.ndarray, addresses: np.ndarray, nbytes: int) -> np.ndarray:
    top = int(addresses.max()) + nbytes if addresses.size else 0
    if top > memory.size:
        text = f"reads up to {top:#x}, past the {memory.size:#x} bytes of shared memory"
        raise DescriptorError("matrix descriptor", [text])
    return addresses
