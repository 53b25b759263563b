"""What public Blackwell kernels do: a multicast GEMM with cluster launch control, and attention in tensor memory."""

import ml_dtypes
import numpy as np
import pytest

from kgen.emulator.launch import Device, launch
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensormap import DataType, encode_tiled

from .conftest import only
from .tcgen05_layouts import Image

BF16 = ml_dtypes.bfloat16


def integers(seed, shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(BF16)


class Gemm:
    """1024 x 256 x K on clusters of four CTAs: four tiles."""

    def __init__(self, ptx, k=192):
        self.a, self.b = integers(1, (1024, k)), integers(2, (256, k))
        self.out, self.device = np.zeros((1024, 256), np.float32), Device(ptx)

    def _map(self, x, rows):
        where = self.device.buffer(x)
        k = x.shape[1]
        return encode_tiled(
            DataType.BFLOAT16, where, (k, x.shape[0]), (2 * k,), (64, rows), (1, 1), swizzle=Swizzle.B128
        )

    def run(self, **options):
        args = [self._map(self.a, 128), self._map(self.b, 32), self.out, 2, 256, self.a.shape[1] // 64]
        return self.device.launch(16, 256, [*args, np.uint32(0x10200490)], smem=2 * 24576 + 1024, **options)

    def check(self):
        assert (self.out == self.a.astype(float) @ self.b.astype(float).T).all()


class Attention:
    def __init__(self, ptx, tiles=4):
        self.tiles, self.ptx = tiles, ptx
        self.q, self.k = integers(3, (128, 64)), integers(4, (tiles, 128, 64))
        self.v, self.image = integers(5, (tiles, 128, 64)), Image()
        for x in (self.q, *self.k):
            self.image.k_major(x.view(np.uint8))
        for x in self.v:
            self.image.mn_major(x)
        self.out = np.zeros((128, 64), np.float32)

    def run(self, **options):
        data = np.frombuffer(bytes(self.image.data), np.uint8).copy()
        return launch(self.ptx, None, 1, 160, [data, self.out, np.uint32(self.tiles)], smem=data.size, **options)

    def check(self):
        want = sum(np.clip(self.q.astype(float) @ k.astype(float).T, -4, 4) @ v.astype(float)
                   for k, v in zip(self.k, self.v, strict=True))  # fmt: skip
        assert (self.out == want).all()


KERNELS = {"gemm_clc": Gemm, "flash_ahead": Attention, "flash_in_turn": Attention}
STRICT = ["smem-race", "tmem-missing-fence-before", "tmem-missing-fence-after"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_pattern(compiled, kernel):
    text = only(compiled("tcgen05_patterns.cu", "100a"), kernel)
    for seed in range(4):
        problem = KERNELS[kernel](text)
        clc = ("success", "failure", "random", "success")[seed]
        result = problem.run(seed=seed, clc=clc, arithmetic="exact" if seed == 3 else "fast", strict=STRICT)
        problem.check()
        assert not result.warnings
