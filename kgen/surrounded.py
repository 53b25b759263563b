"""Host copies of matrices for the emulator, each inside a larger array of NaN."""

from __future__ import annotations

import numpy as np

GUARD_ROWS = 2


def surrounded(values: np.ndarray, stride: int) -> np.ndarray:
    """`values` in the corner of a larger array with rows of `stride` elements and guard rows below. Its other bytes are
    0xff: NaN to whoever reads them (e2m1 has none, and reads -6)."""
    shape = (values.shape[0] + GUARD_ROWS, stride)
    raw = b"\xff" * (shape[0] * shape[1] * values.dtype.itemsize)
    poisoned = np.frombuffer(raw, values.dtype).reshape(shape).copy()
    poisoned[: values.shape[0], : values.shape[1]] = values
    return poisoned
