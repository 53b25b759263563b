"""A cluster with tensor cores, and operands put where descriptors and layouts find them."""

import numpy as np

from kgen.emulator import formats, tmem
from kgen.emulator.bulk import BulkUnit
from kgen.emulator.descriptors import K_MAJOR, MN_MAJOR, MatrixDescriptor, element_addresses
from kgen.emulator.idesc import PACKED, InstructionDescriptor
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tcgen05 import Tcgen05
from kgen.emulator.tcgen05_io import TmemAccess
from kgen.emulator.tcgen05_mma import MmaOperands
from kgen.emulator.tensor_memory import TensorMemory
from units.conftest import Bench

A_AT, B_AT, SF_AT = 0x400, 0x8400, 0xC400
D, A_COL, SFA, SFB = 0, 256, 320, 352  # columns


class TensorCore(Bench):
    def __init__(self, ctas=1, seed=0, arithmetic="exact", strict=False):
        super().__init__(ctas, seed, init=True)
        self.tmem = [TensorMemory(self.monitor, self.units.order, f"tensor memory of CTA {r}") for r in range(ctas)]
        for r, memory in enumerate(self.tmem):
            memory.alloc(f"CTA {r}", 512)
        self.io = [TmemAccess(m) for m in self.tmem]
        self.core = Tcgen05(self.units, self.tmem, arithmetic, strict)
        self.bulk = BulkUnit(self.units)

    def place(self, rank, start, codes, bits, *, packed=False, trans=False, swizzle=Swizzle.B128):
        """Writes codes [rows, k] into shared memory; the descriptor."""
        rows = len(codes)
        if packed:
            codes, bits = codes[:, ::2] | codes[:, 1::2] << 4, 8
        padded = bits < 8
        esz = max(bits, 8) // 8
        if padded:
            codes = padded_bytes(codes, bits)
        if esz == 4 and trans:
            swizzle = Swizzle.B128_ATOM_32B
        desc = MatrixDescriptor("sm_100", start, 8192 if trans else 0, 1024, swizzle)
        at = element_addresses(desc, rows, codes.shape[1], esz, MN_MAJOR if trans else K_MAJOR)
        memory = self.smem(rank).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[esz])
        memory[at // esz] = codes
        return desc.encode()

    def put_a(self, codes, bits, m, packed=False):
        """A in tensor memory at A_COL, in all copies."""
        group = len(self.tmem)
        if packed:
            words = pack(codes, 4)
        else:
            words = pack(codes if bits >= 8 else tmem.container_bytes(codes, bits), max(bits, 8))
        cta, lanes = tmem.a_lanes(m, group)
        for i, memory in enumerate(self.tmem):
            at = lanes[cta == i][:, :, None], A_COL + np.arange(8)
            memory.data[at] = words[cta == i][:, None, :]
            memory.init[at] = True

    def put_scales(self, layout, column, codes):
        """Scale codes [rows, n] (byte b of the word) into every copy and CTA that needs them."""
        words = np.zeros(len(codes), np.uint32)
        for byte in range(codes.shape[1]):
            words |= codes[:, byte].astype(np.uint32) << 8 * byte
        for i, memory in enumerate(self.tmem):
            own = np.ones(len(codes), bool) if layout.cta is None else layout.cta == i
            at = layout.lane[own], (layout.column[own] + column)[:, None]
            memory.data[at], memory.init[at] = words[own][:, None], True

    def d(self, m, n, ws=False):
        """uint32 [m, n]: the accumulator at column D."""
        layout = tmem.d_layout(m, n, len(self.tmem), ws)
        out = np.zeros((m, n), np.uint32)
        for i, memory in enumerate(self.tmem):
            rows = layout.cta == i
            out[rows] = memory.data[layout.lane[rows], layout.column[rows] + D]
        return out

    def operands(self, idesc, a, b, *, a_in_tmem=False, **more):
        """Places A [m, k] and B [n, k] codes, split over the CTAs; the operands of the instruction."""
        group, packed = len(self.tmem), idesc.kind in PACKED
        bits_a, bits_b = width(idesc.a_format), width(idesc.b_format)
        desc_a = None
        if a_in_tmem:
            self.put_a(a, bits_a, idesc.m, packed)
        for i in range(group):
            rows, cols = np.array_split(a, group)[i], np.array_split(b, group)[i]
            if not a_in_tmem:
                desc_a = self.place(i, A_AT, rows, bits_a, packed=packed, trans=idesc.transpose_a)
            desc_b = self.place(i, B_AT, cols, bits_b, packed=packed, trans=idesc.transpose_b)
        return MmaOperands(idesc, D, desc_b, desc_a, A_COL if a_in_tmem else None, **more)

    def run(self, operands, actor=0):
        self.core.mma(self.warps[actor], 0, len(self.tmem), operands)
        self.agenda.drain()


def width(fmt):
    return 8 if fmt in ("u8", "s8") else 32 if fmt == "tf32" else formats.FORMATS[fmt].bits


def pack(codes, bits):
    per = 32 // bits
    shifts = (np.arange(per) * bits).astype(np.uint32)
    return np.bitwise_or.reduce(codes.reshape(len(codes), -1, per).astype(np.uint32) << shifts, axis=-1)


def padded_bytes(codes, bits):
    """16-byte groups of 16 codes of 4 or 6 bits."""
    out = np.zeros((len(codes), codes.shape[1] // 16, 16), np.uint8)
    for row in range(len(codes)):
        for g in range(codes.shape[1] // 16):
            value = sum(int(c) << bits * i for i, c in enumerate(codes[row, 16 * g : 16 * g + 16]))
            out[row, g] = np.frombuffer(value.to_bytes(16, "little"), np.uint8)
    return out.reshape(len(codes), -1)


def values(codes, fmt):
    """float64 of codes; integers of the integer formats."""
    if fmt in ("u8", "s8"):
        return codes.view(np.uint8 if fmt == "u8" else np.int8).astype(np.float64)
    return formats.decode(codes, formats.FORMATS[fmt])


def random_codes(rng, shape, fmt):
    """Codes of small integers (exact in every sum), or of any value in the tiny formats."""
    if fmt in ("u8", "s8"):
        return rng.integers(0, 256, shape).astype(np.uint8)
    high = 4 if fmt in ("e2m1", "e2m3") else 5
    return formats.encode(rng.integers(-high, high + 1, shape).astype(np.float64), formats.FORMATS[fmt])


def problem(rng, kind, m, n, fa, fb, d_format="f32", **more):
    """(idesc, A codes, B codes, the exact product)."""
    idesc = InstructionDescriptor(kind, m, n, fa, fb, d_format, **more)
    a, b = random_codes(rng, (m, idesc.k), fa), random_codes(rng, (n, idesc.k), fb)
    return idesc, a, b, values(a, fa) @ values(b, fb).T
