"""Operands for the emulator: numbers as each element type stores them, with their block scales, and what they stand
for."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from kgen.plan.common import GemmPlan
from kgen.plan.resources import Dtype, Scales

NUMPY = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "ue8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "ue4m3": np.dtype(ml_dtypes.float8_e4m3fn),
}
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}


@dataclass(frozen=True)
class Operand:
    """A or B: `stored` as the matrix lies in memory, `values` [rows, k] what it stands for, `scales` packed."""

    stored: np.ndarray
    values: np.ndarray
    scales: np.ndarray | None


def make_operand(plan: GemmPlan, which: str, numbers: np.ndarray, rng: np.random.Generator | None) -> Operand:
    """Quantises `numbers` [rows, k]. With `rng` the elements are the numbers themselves and scales are drawn, powers
    of two about 1, so that every product is exact."""
    dtype, scales = plan.inputs[which == "b"], plan.scales
    codes = None
    if scales:
        codes = _scale_codes(numbers, dtype, scales, rng)
        each = np.repeat(codes.astype(np.float64), scales.block, axis=1)[:, : numbers.shape[1]]
        elements = rounded(numbers if rng else numbers / each, dtype)
        values = elements.astype(np.float64) * each
    else:
        elements = rounded(numbers, dtype)
        values = elements.astype(np.float64)
    stored = _packed(elements) if dtype.packed > 1 else elements
    if plan.row_of(which) != "k":
        stored = np.ascontiguousarray(stored.T)
    return Operand(stored, values, None if codes is None else scale_atoms(codes.view(np.uint8)))


def rounded(numbers: np.ndarray, dtype: Dtype) -> np.ndarray:
    """To an element type; a narrow one saturates."""
    if dtype.name == "tf32":
        words = numbers.astype(np.float32).view(np.uint32)
        return (words & 0xFFFFE000).view(np.float32)  # the tensor core reads no more bits of the fraction
    if dtype.name in LARGEST:
        numbers = np.clip(numbers, -LARGEST[dtype.name], LARGEST[dtype.name])
    return numbers.astype(NUMPY[dtype.name])


def _scale_codes(numbers: np.ndarray, dtype: Dtype, scales: Scales, rng) -> np.ndarray:
    """[rows, blocks]: what brings the largest of each block near the largest that an element holds."""
    rows, k = numbers.shape
    blocks = -(-k // scales.block)
    if rng:
        return np.ldexp(1.0, rng.integers(-1, 2, (rows, blocks))).astype(NUMPY[scales.name])
    padded = np.zeros((rows, blocks * scales.block))
    padded[:, :k] = np.abs(numbers)
    top = np.maximum(padded.reshape(rows, blocks, scales.block).max(axis=2), 2.0**-20)
    if scales.name == "ue8m0":
        return np.exp2(np.ceil(np.log2(top / LARGEST[dtype.name]))).astype(NUMPY["ue8m0"])
    return np.maximum(top / LARGEST[dtype.name], 2.0**-6).astype(NUMPY["ue4m3"])


def _packed(elements: np.ndarray) -> np.ndarray:
    """Two to a byte, the lower k in the low half."""
    codes = elements.view(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4


def scale_atoms(codes: np.ndarray) -> np.ndarray:
    """[rows, blocks] as atoms of 512 bytes, each 128 rows by 4 blocks, those along K next to each other. Rows that
    are none are NaN (D has no such rows); blocks that are none are zero (they meet zeros of the operands)."""
    rows, blocks = codes.shape
    padded = np.full((-(-rows // 128) * 128, -(-blocks // 4) * 4), 0xFF, np.uint8)
    padded[:, blocks:] = 0
    padded[:rows, :blocks] = codes
    atoms = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4)  # row block, quarter, row, atom along K, block
    return np.ascontiguousarray(atoms.transpose(0, 3, 2, 1, 4)).reshape(len(atoms), -1)
