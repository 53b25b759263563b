"""Launching the generated GEMMs in the emulator the way the launcher at the end of each .cu does."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np

from kgen.emulator.launch import Device
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensormap import DataType, encode_tiled

GENERATED = Path(__file__).parents[3] / "generated" / "sm_90a"
TYPES = {"bf16": (ml_dtypes.bfloat16, DataType.BFLOAT16), "f16": (np.float16, DataType.FLOAT16)}


def constant(source: str, name: str) -> int:
    """A constant of a .cu file, which may be an expression of others."""
    match = re.search(rf"\b{name} = ([^,;]+)[,;]", source)
    assert match, f"{name} is not in the source"
    text = re.sub(r"(int|uint32_t|size_t)?\(?sizeof\((Input|Output)\)\)?", "2", match[1]).replace("/", "//")
    names = {x: constant(source, x) for x in re.findall(r"[A-Z][A-Z_]+", text)}
    return int(eval(text, {}, names))


def _whole(x: int) -> int:
    return -(-x // 8) * 8


class Gemm:
    """A problem of M x N x K (extents in elements) for step `step`, with padded leading dimensions."""

    def __init__(self, ptx: str, source: str, step: int, m: int, n: int, k: int, dtype: str = "bf16", pad: int = 8):
        self.shape, self.step, self.source = (m, n, k), step, source
        kind, self.map_type = TYPES[dtype]
        rng = np.random.default_rng(m * 7 + n * 3 + k)
        self.a, self.b = (np.zeros((r, _whole(k) + pad), kind) for r in (m, n))
        self.d = np.full((m, _whole(n) + pad), 7, kind)
        self.a[:, :k], self.b[:, :k] = rng.standard_normal((m, k)), rng.standard_normal((n, k))
        # What lies beyond K must not matter.
        self.a[:, k:] = self.b[:, k:] = np.nan
        self.device = Device(ptx)

    def _map(self, array, rows, columns, box_rows, box_columns):
        address = self.device.buffer(array)
        stride = array.shape[1] * 2
        box = (box_columns, box_rows)
        return encode_tiled(self.map_type, address, (columns, rows), (stride,), box, (1, 1), swizzle=Swizzle.B128)

    def run(self, sm_count: int = 4, **options):
        """Launches; see `Device.launch` for the options."""
        m, n, k = self.shape
        s = self.source
        block_m, block_n, block_k = (constant(s, f"BLOCK_{x}") for x in "MNK")
        smem, threads = constant(s, "SMEM_BYTES"), constant(s, "NUM_THREADS")
        pointers = [self.device.buffer(x, name) for x, name in ((self.a, "a"), (self.b, "b"), (self.d, "d"))]
        sizes = [np.int32(x) for x in (m, n, k)]
        strides = [x.shape[1] for x in (self.a, self.b, self.d)]
        cluster = constant(s, "CLUSTER_SIZE") if self.step >= 8 else 1
        tile_m, tile_n = block_m * cluster, block_n
        tiles = (-(-m // tile_m), -(-n // tile_n))
        if self.step <= 2:
            grid = 1
        elif self.step <= 5:
            grid = tiles
        else:
            grid = min(tiles[0] * tiles[1], sm_count // cluster) * cluster
        if self.step <= 3:
            args = [x for pair in zip(pointers, strides, strict=True) for x in pair] + sizes
        else:
            rows, columns = constant(s, "STORE_ROWS"), constant(s, "STORE_COLUMNS")
            whole = max(n // 8, 1) * 8
            args = [
                self._map(self.a, m, k, block_m, block_k),
                self._map(self.b, n, k, block_n // cluster, block_k),
                self._map(self.d, m, whole, rows, columns),
                pointers[2], strides[2], *sizes,
            ]  # fmt: skip
        return self.device.launch(grid, threads, args, smem=smem, sm_count=sm_count, **options)

    def check(self):
        """Asserts that D is right and that nothing beside it was written."""
        _, n, k = self.shape
        expected = self.a[:, :k].astype(np.float64) @ self.b[:, :k].astype(np.float64).T
        got = self.d[:, :n].astype(np.float64)
        assert np.isfinite(got).all()
        error = np.abs(got - expected)
        assert (error <= 1e-2 * np.sqrt(k) + 2**-8 * np.abs(expected)).all(), float(error.max())
        assert (self.d[:, n:].astype(float) == 7).all(), "padding was overwritten"


def golden(step: int) -> Path:
    """The .cu of a preset."""
    return GENERATED / f"gemm_step{step}" / f"gemm_step{step}.cu"
