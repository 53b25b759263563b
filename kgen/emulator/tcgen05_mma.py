"""One tcgen05.mma: where its operands lie in the CTAs that take part, and what it computes.

PTX ISA 9.7.16.10. For cta_group::2 index 0 is the even CTA of the pair: A's rows and B's columns are split
evenly between the two, shared-memory offsets and tensor-memory addresses are the same in both.

Not modelled, and refused: sparse operands, `.ashift`, zero-column masks, K = 96.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kgen.emulator.async_units import CtaUnits
from kgen.emulator.descriptors import K_MAJOR, MN_MAJOR, check_operand, decode_tcgen05, operand_words, read_operand
from kgen.emulator.formats import FORMATS
from kgen.emulator.idesc import PACKED, SCALED, InstructionDescriptor, check_instruction
from kgen.emulator.mma import Scales, mma
from kgen.emulator.monitor import Monitor
from kgen.emulator.tensor_memory import TensorMemory, region
from kgen.emulator.tmem import (
    COLUMNS,
    LANES,
    a_codes,
    a_lanes,
    d_layout,
    scale_a_layout,
    scale_b_layout,
    scale_bytes,
    split_address,
)
from kgen.errors import EmulatorError

A_COLUMNS = 8  # 32 bytes of K per row, whatever the type


@dataclass(frozen=True)
class MmaOperands:
    """The operands of a tcgen05.mma as the instruction gives them.

    d, a_tmem, scale_a, scale_b: tensor-memory addresses; a, b: shared-memory descriptors; exactly one of a and
    a_tmem. masked: lanes left unwritten, bit i of entry 0 / 1 is lane i of the even / odd CTA.
    scale_vec: scales per row of the block-scaled kinds (1, 2, 4). scale_d: D enters as D * 2^-scale_d.
    """

    idesc: InstructionDescriptor
    d: int
    b: int
    a: int | None = None
    a_tmem: int | None = None
    accumulate: bool = True
    ws: bool = False
    masked: tuple[int, ...] = ()
    scale_vec: int | None = None
    scale_a: int = 0
    scale_b: int = 0
    scale_d: int = 0


@lru_cache(maxsize=256)
def _d_pieces(m: int, n: int, cta_group: int, ws: bool, lane: int) -> tuple[np.ndarray, ...]:
    layout = d_layout(m, n, cta_group, ws, lane=lane)
    return tuple(
        region(layout.lane[layout.cta == i], layout.column[layout.cta == i]) for i in range(cta_group)
    )


def _bits(name: str) -> int:
    return 8 if name in ("u8", "s8") else FORMATS[name].storage if FORMATS[name].bits > 8 else FORMATS[name].bits


class Mma:
    """A checked tcgen05.mma over the CTAs (units and tensor memories) that take part, in pair order.

    `smem_words(i)` and the `*_pieces` say what it touches, for the checks; `run` executes it.
    Raises InstructionError, DescriptorError or EmulatorError for malformed operands. Fails: swizzle-phase.
    """

    def __init__(self, o: MmaOperands, ctas: list[CtaUnits], memories: list[TensorMemory], monitor: Monitor):
        self.o, self.ctas, self.memories, self.monitor = o, ctas, memories, monitor
        d, self.cta_group = o.idesc, len(ctas)
        in_tmem = o.a_tmem is not None
        if in_tmem == (o.a is not None):
            raise EmulatorError("tcgen05.mma: A lies either in shared or in tensor memory")
        if d.sparse or d.k96 or d.max_shift:
            raise EmulatorError("tcgen05.mma: sparse operands, K = 96 and zero-column masks are not modelled")
        for text in check_instruction(d, self.cta_group, ws=o.ws, scale_vec=o.scale_vec, a_in_tmem=in_tmem):
            monitor.fail("idesc-unusual", text)
        if o.scale_d and d.kind not in ("f16", "tf32"):
            raise EmulatorError(f"tcgen05.mma: kind::{d.kind} has no scale-input-d")
        self.packed = d.kind in PACKED
        self.lane, self.column = split_address(o.d)
        self.layout = d_layout(d.m, d.n, self.cta_group, o.ws, lane=self.lane)
        self._desc_a = None if in_tmem else self._descriptor(o.a, d.a_format, d.transpose_a)
        self._desc_b = self._descriptor(o.b, d.b_format, d.transpose_b)
        if in_tmem:
            if d.transpose_a:
                raise EmulatorError("tcgen05.mma: A in tensor memory is always K-major")
            lane, self._a_column = split_address(o.a_tmem)
            if lane != self.lane:
                raise EmulatorError(f"tcgen05.mma: a-tmem names lane {lane}, d-tmem lane {self.lane}; must agree")
            self._a_cta, self._a_lane = a_lanes(d.m, self.cta_group, lane)
        if d.kind in SCALED:
            self._scales_a = scale_a_layout(d.m, self.cta_group)
            self._scales_b = scale_b_layout(d.n, d.m, self.cta_group)
            for name, address in (("A", o.scale_a), ("B", o.scale_b)):
                if split_address(address)[0]:
                    raise EmulatorError(f"tcgen05.mma: scale factors of {name} start at lane 0, not {address >> 16}")

    def __str__(self) -> str:
        d = self.o.idesc
        ws = ".ws" if self.o.ws else ""
        return f"tcgen05.mma{ws} kind::{d.kind} {d.m}x{d.n}x{d.k} cta_group::{self.cta_group}"

    def _descriptor(self, word: int, fmt: str, transposed: bool):
        desc, major = decode_tcgen05(word), MN_MAJOR if transposed else K_MAJOR
        check_operand(desc, max(_bits(fmt), 8), major, self.packed)
        if desc.start % desc.swizzle.period // 128 and not desc.base_offset:
            inside = f"inside the {desc.swizzle.period}-byte pattern of its {desc.swizzle} swizzle, with base offset 0"
            self.monitor.fail("swizzle-phase", f"{self}: a descriptor starts at shared {desc.start:#x}, {inside}")
        return desc, major

    # --- what it touches ------------------------------------------------------------------------------

    def smem_words(self, which: str) -> np.ndarray:
        """Words of operand "A" or "B", the same in every CTA; empty for A in tensor memory."""
        d = self.o.idesc
        parsed = self._desc_a if which == "A" else self._desc_b
        if parsed is None:
            return np.zeros(0, np.int64)
        desc, major = parsed
        rows = (d.m if which == "A" else d.n) // self.cta_group
        if self.packed:
            return operand_words(desc, rows, 32, 1, major)
        esz = max(_bits(d.a_format if which == "A" else d.b_format), 8) // 8
        return operand_words(desc, rows, 32 // esz, esz, major)

    def d_pieces(self, i: int) -> np.ndarray:
        d = self.o.idesc
        return _d_pieces(d.m, d.n, self.cta_group, self.o.ws, self.lane)[i] + self.column

    def read_pieces(self, i: int) -> list[tuple[str, np.ndarray]]:
        """(what, pieces) of the operands in tensor memory of CTA i."""
        found = []
        if self._desc_a is None:
            lanes = self._a_lane[self._a_cta == i]
            found.append(("A", region(lanes[..., None], self._a_column + np.arange(A_COLUMNS))))
        if self.o.idesc.kind in SCALED:
            own = self._scales_a.cta == i
            lane, col = self._scales_a.lane[own], self._scales_a.column[own] + split_address(self.o.scale_a)[1]
            found.append(("scales of A", region(lane, col[:, None])))
            col = self._scales_b.column + split_address(self.o.scale_b)[1]
            found.append(("scales of B", region(self._scales_b.lane, col[:, None])))
        return found

    # --- execution ------------------------------------------------------------------------------------

    def run(self, arithmetic: str) -> None:
        """Reads the operands, computes, writes D. Fails: uninitialised-tmem, tmem-replicas."""
        o, d = self.o, self.o.idesc
        halves = [
            self._shared(cta, self._desc_b, d.n // self.cta_group, d.b_format) for cta in self.ctas
        ]
        a = self._tmem_a() if self._desc_a is None else self._shared_a()
        scales = self._scales() if d.kind in SCALED else None
        result = mma(
            a, np.concatenate(halves), self._accumulators() if o.accumulate else None, d.a_format, d.b_format,
            d.d_format, unit="tcgen05", arithmetic=arithmetic, scales=scales, packed=self.packed,
            negate_a=d.negate_a, negate_b=d.negate_b, scale_c=o.scale_d, saturate=d.saturate,
        )  # fmt: skip
        for i, memory in enumerate(self.memories):
            rows, index = self._d_index(i)
            values = result[rows]
            if o.masked and o.masked[i]:
                lane, column = self.layout.lane[rows], self.layout.column[rows] + self.column
                bits = np.array([o.masked[i] >> bit & 1 for bit in range(LANES)], bool)
                keep = ~bits[lane]
                index, values = (lane[keep], column[keep]), values[keep]
            memory.data[index] = values
            memory.init[index] = True

    def _d_index(self, i: int) -> tuple:
        """(rows, (lanes, columns)) of D in CTA i, as slices where D is a plain rectangle."""
        if self.layout.name in "AD":
            rows = slice(i * LANES, (i + 1) * LANES)
            return rows, (slice(None), slice(self.column, self.column + self.o.idesc.n))
        rows = self.layout.cta == i
        return rows, (self.layout.lane[rows], self.layout.column[rows] + self.column)

    def _accumulators(self) -> np.ndarray:
        d = self.o.idesc
        c = np.zeros((d.m, d.n), np.uint32)
        for i, memory in enumerate(self.memories):
            rows, index = self._d_index(i)
            memory.check_init(index, f"{self} (D)")
            c[rows] = memory.data[index]
        return c.astype(np.uint16) if d.d_format == "f16" else c

    def _shared_a(self) -> np.ndarray:
        d = self.o.idesc
        return np.concatenate(
            [self._shared(cta, self._desc_a, d.m // self.cta_group, d.a_format) for cta in self.ctas]
        )

    def _shared(self, cta: CtaUnits, parsed, rows: int, fmt: str) -> np.ndarray:
        bits = _bits(fmt)
        padded = bits < 8 and not self.packed
        return read_operand(cta.shared.bytes, parsed[0], rows, self.o.idesc.k, bits, parsed[1], padded)

    def _tmem_a(self) -> np.ndarray:
        d, columns = self.o.idesc, self._a_column + np.arange(A_COLUMNS)
        words = np.zeros((d.m, A_COLUMNS), np.uint32)
        for i, memory in enumerate(self.memories):
            rows = self._a_cta == i
            copies = self._copies(memory, self._a_lane[rows][:, :, None], columns, "A")
            words[rows] = copies[:, 0]
        return a_codes(words, d.k, _bits(d.a_format), self.packed)

    def _scales(self) -> Scales:
        o, d = self.o, self.o.idesc
        word_a = np.zeros(d.m, np.uint32)
        for i, memory in enumerate(self.memories):
            own = self._scales_a.cta == i
            column = self._scales_a.column[own] + split_address(o.scale_a)[1]
            word_a[own] = self._copies(memory, self._scales_a.lane[own], column[:, None], "scales of A")[:, 0]
        column = self._scales_b.column + split_address(o.scale_b)[1]
        words_b = [
            self._copies(memory, self._scales_b.lane, column[:, None], "scales of B")[:, 0] for memory in self.memories
        ]
        if len(words_b) == 2 and (words_b[0] != words_b[1]).any():
            self._replicas("scales of B", "the two CTAs of the pair hold different values")
        a, b = (
            np.stack([words >> 8 * byte & 0xFF for byte in scale_bytes(o.scale_vec, ident)], axis=1).astype(np.uint8)
            for words, ident in ((word_a, d.sfa_id), (words_b[0], d.sfb_id))
        )
        return Scales(a, b, d.scale_format, d.k // o.scale_vec)

    def _copies(self, memory: TensorMemory, lane, column, what: str) -> np.ndarray:
        """Words [rows, copies, ...], which must agree: the hardware may read any of the copies."""
        memory.check_init((lane, column), f"{self} ({what})")
        words = memory.data[lane, column]
        if (words != words[:, :1]).any():
            self._replicas(what, "the copies in different lanes hold different values")
        return words

    def _replicas(self, what: str, text: str) -> None:
        self.monitor.fail("tmem-replicas", f"{self}, {what}: {text}")


def pieces_of_columns(lanes: np.ndarray, column: int, count: int) -> np.ndarray:
    """Pieces of whole rows of `count` columns."""
    if column + count > COLUMNS:
        raise EmulatorError(f"tensor memory: column {column + count - 1} does not exist")
    return region(np.asarray(lanes).reshape(-1, 1), column + np.arange(count))
