"""Blackwell kernels written straight from the PTX ISA, compiled for sm_100a, against numpy."""

import re

import ml_dtypes
import numpy as np
import pytest

from kgen.emulator.launch import Device
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensormap import DataType, encode_tiled
from kgen.emulator.trace import Trace
from kgen.errors import EmulatorError

# kernel: (numpy type, map type, M, N, idesc type code)
KERNELS = {
    "gemm_f16": (ml_dtypes.bfloat16, DataType.BFLOAT16, 128, 128, 1),
    "gemm_tf32": (np.float32, DataType.FLOAT32, 128, 64, 2),
    "gemm_f8": (ml_dtypes.float8_e4m3fn, DataType.UINT8, 128, 256, 0),
    "gemm_pair": (ml_dtypes.bfloat16, DataType.BFLOAT16, 256, 128, 1),
}


class Problem:
    def __init__(self, ptx, kernel, steps=3):
        self.kernel, self.steps = kernel, steps
        kind, self.map_type, self.m, self.n, self.code = KERNELS[kernel]
        self.per = 128 // np.dtype(kind).itemsize  # elements of K in a slab
        rng = np.random.default_rng(5)
        k = self.per * steps - 16 // np.dtype(kind).itemsize  # the last slab is cut short
        # Integers, so that every type and order of summation gives the same result.
        self.a, self.b = (rng.integers(-4, 5, (r, k)).astype(kind) for r in (self.m, self.n))
        self.out = np.zeros((self.m, self.n), np.float32)
        self.device = Device(ptx, kernel)

    def _map(self, x, rows):
        size = x.dtype.itemsize
        address = self.device.buffer(x)
        return encode_tiled(
            self.map_type, address, x.shape[::-1], (x.shape[1] * size,), (self.per, rows), (1, 1), swizzle=Swizzle.B128
        )

    def run(self, **options):
        pair = 2 if self.kernel == "gemm_pair" else 1
        idesc = 1 << 4 | self.code << 7 | self.code << 10 | self.n >> 3 << 17 | self.m >> 4 << 24
        maps = self._map(self.a, 128), self._map(self.b, self.n // pair)
        args = [*maps, self.out, self.steps, self.per, np.uint32(idesc)]
        return self.device.launch(pair, 128, args, smem=16384 + self.n // pair * 128 + 64, **options)

    def check(self):
        assert (self.out == self.a.astype(float) @ self.b.astype(float).T).all()


@pytest.mark.parametrize("arithmetic", ["fast", "exact"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(compiled, kernel, arithmetic):
    for seed in range(2):
        problem = Problem(compiled("tcgen05.cu", "100a"), kernel)
        result = problem.run(seed=seed, arithmetic=arithmetic)
        problem.check()
        assert not result.warnings


MUTANTS = {
    # name: (kernel, pattern, replacement, check)
    "no wait::ld": ("gemm_f16", r"tcgen05\.wait::ld\S*;", "", "tmem-missing-wait-ld"),
    "results read without a commit": (
        "gemm_f16", r"(tcgen05\.commit\S+ \[%r\d+\];)(?![\s\S]*tcgen05\.commit[\s\S]*\.entry gemm_tf32)", "",
        "deadlock",
    ),
    "no dealloc": ("gemm_f16", r"tcgen05\.dealloc\S* %r\d+, 256;", "", "tmem-leak"),
    "another warp's lanes": ("gemm_f16", r"shl\.b32(\s+%r\d+, %r1), 16;", r"shl.b32\1, 15;", "tmem-lane-window"),
    "columns that are not allocated": (
        "gemm_f16", r"(tcgen05\.(?:alloc|dealloc)\S* \S+), 256;", r"\1, 64;", "tmem-out-of-allocation",
    ),
    "a count of columns that is no power of two": (
        "gemm_f16", r"(tcgen05\.(?:alloc|dealloc)\S* \S+), 256;", r"\1, 96;", "tmem-alloc",
    ),
    "the pair expects the bytes of one CTA": ("gemm_pair", r"49152", "24576", "deadlock|mbarrier|in-flight|unobserved"),
    "accumulating on nothing": (
        "gemm_f16", r"setp\.ne\.u32 p, %r\d+, 0;", "setp.eq.u32 p, 0, 0;", "uninitialised-tmem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(compiled, name):
    kernel, pattern, new, check = MUTANTS[name]
    text, count = re.subn(pattern, new, compiled("tcgen05.cu", "100a"))
    assert count, "the pattern is not in the PTX"
    problem = Problem(text, kernel)
    with pytest.raises(EmulatorError, match=check) as caught:
        problem.run()
        problem.check()
    assert "PTX line" in str(caught.value)


def test_timeline_of_a_pair(compiled):
    trace = Trace()
    Problem(compiled("tcgen05.cu", "100a"), "gemm_pair", steps=4).run(trace=trace)
    spans = trace.spans()
    groups = [s for s in spans if s.kind == "group"]
    # Four instructions a slab; one commit per slab and a last one that stands for nothing new.
    assert [s.label for s in groups] == [f"group {i}" for i in range(5)]
    mmas = [s for s in spans if s.kind == "mma"]
    assert len(mmas) == 16
    for i, group in enumerate(groups[:4]):
        assert all(group.start <= s.start <= s.end <= group.end for s in mmas[4 * i : 4 * i + 4])
    assert sum(s.kind == "load" for s in spans) == 4 * 2 * 2
    assert {s.label for s in spans if s.kind == "tmem"} >= {"tcgen05.ld.32x32b.x8 at column 0"}
