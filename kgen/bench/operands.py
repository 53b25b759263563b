"""Random inputs and poisoned outputs on the device, several sets of each.

Inputs are normal(0, 1): zeros and constants draw less power and so run at higher clocks, and hide errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from kgen.runtime import DTYPE_BYTES, DeviceBuffer, GemmShape, Stream, copy, synchronize

ALIGNMENT = 256  # bytes; what an own cudaMalloc would give, and what cuBLASLt's heuristic assumes
TIMES_L2 = 4  # the sets together exceed the L2 this many times
FEWEST_SETS, MOST_SETS = 3, 1024
_MEMORY_SHARE = 0.4  # of the free memory, for inputs and again for outputs

# An odd number of elements, so that tiling the block over a matrix whose row length is even never repeats a
# row at a fixed distance: otherwise a kernel that took row r + 4096 for row r could pass unnoticed.
BLOCK_ELEMENTS = 33_554_393

_NUMPY_DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16)}


@dataclass(frozen=True)
class SetPlan:
    """How many operand sets to rotate, and how many outputs each contestant owns (set s writes s % slots)."""

    sets: int
    slots: int


def round_up(value: int, multiple: int) -> int:
    """The next multiple at or above `value`."""
    return -(-value // multiple) * multiple


def set_bytes(shape: GemmShape) -> int:
    """Bytes of one input set, A and B each aligned."""
    return round_up(shape.bytes_a, ALIGNMENT) + round_up(shape.bytes_b, ALIGNMENT)


def plan_sets(shape: GemmShape, l2_bytes: int, free_bytes: int, contestants: int) -> SetPlan:
    """At least 3 sets, and more while they do not exceed the L2 four times; fewer only for lack of memory."""
    share = int(free_bytes * _MEMORY_SHARE)
    wanted = min(max(FEWEST_SETS, math.ceil(TIMES_L2 * l2_bytes / set_bytes(shape))), MOST_SETS)
    sets = max(1, min(wanted, share // set_bytes(shape)))
    output = round_up(shape.bytes_d, ALIGNMENT) * contestants
    return SetPlan(sets, max(1, min(sets, share // output)))


class RandomBlock:
    """A block of normal(0, 1) numbers on the device, of which every input is cut."""

    def __init__(self, dtype: str, seed: int, elements: int = BLOCK_ELEMENTS):
        host = np.random.default_rng(seed).standard_normal(elements, dtype=np.float32)
        rounded = host.astype(_NUMPY_DTYPES[dtype])
        self.elements, self._width = elements, DTYPE_BYTES[dtype]
        self._buffer = DeviceBuffer(rounded.nbytes)
        copy(self._buffer.ptr, rounded.ctypes.data, rounded.nbytes)

    def spread(self, dst: int, elements: int, phase: int) -> None:
        """Fill `elements` at address `dst` with the block's numbers, repeated, beginning at `phase`."""
        for offset, begin, count in pieces(elements, phase, self.elements):
            source = self._buffer.ptr + begin * self._width
            copy(dst + offset * self._width, source, count * self._width)


def pieces(elements: int, phase: int, block: int) -> list[tuple[int, int, int]]:
    """(offset in the target, begin in the block, count) of the copies that tile a target of `elements`."""
    done, begin, result = 0, phase % block, []
    while done < elements:
        count = min(block - begin, elements - done)
        result.append((done, begin, count))
        done, begin = done + count, 0
    return result


class OperandSets:
    """`sets` pairs (A, B) of one shape in one allocation."""

    def __init__(self, shape: GemmShape, sets: int, block: RandomBlock):
        self.sets, self.bytes = sets, sets * set_bytes(shape)
        self._stride, self._b = set_bytes(shape), round_up(shape.bytes_a, ALIGNMENT)
        self._arena = DeviceBuffer(self.bytes)
        rows_a, rows_b = shape.m * shape.lda, shape.n * shape.ldb
        phase = 0
        for index in range(sets):
            block.spread(self.a(index), rows_a, phase)
            block.spread(self.b(index), rows_b, phase + rows_a)
            phase += rows_a + rows_b + 1  # no two sets alike, even where the block divides them evenly
        synchronize()  # copies within the device return before they are done

    def a(self, index: int) -> int:
        """Address of A of a set."""
        return self._arena.ptr + index * self._stride

    def b(self, index: int) -> int:
        """Address of B of a set."""
        return self._arena.ptr + index * self._stride + self._b

    def free(self) -> None:
        """Give the memory back."""
        self._arena.free()


class Outputs:
    """`slots` outputs D of one shape that belong to one contestant."""

    def __init__(self, shape: GemmShape, slots: int):
        self.slots, self._stride = slots, round_up(shape.bytes_d, ALIGNMENT)
        self._arena = DeviceBuffer(slots * self._stride)

    def d(self, slot: int) -> int:
        """Address of a D."""
        return self._arena.ptr + slot * self._stride

    def poison(self, stream: Stream) -> None:
        """Make every element a NaN, so that one never written cannot pass for a result."""
        self._arena.fill_byte(0xFF, stream)

    def free(self) -> None:
        """Give the memory back."""
        self._arena.free()
