"""Host copies of matrices for the emulator, each inside a larger array of NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np

NUMPY = {"bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32)}
GUARD_ROWS = 2


def surrounded(values: np.ndarray, stride: int) -> np.ndarray:
    """`values` in the corner of a poisoned array with rows of `stride` elements and guard rows below."""
    shape = (values.shape[0] + GUARD_ROWS, stride)
    raw = b"\xff" * (shape[0] * shape[1] * values.dtype.itemsize)
    poisoned = np.frombuffer(raw, values.dtype).reshape(shape).copy()
    poisoned[: values.shape[0], : values.shape[1]] = values
    return poisoned
