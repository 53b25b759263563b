"""A card made of host memory: the benchmark as it is, with the CUDA calls beneath it replaced.

Run as a script it is a worker (see `kgen.bench.worker`) whose cuBLAS is the fake one in the folder that
KGEN_CUBLAS_DIR names, or absent.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path

from kgen.baselines import CublasGemmEx, CublasLt
from kgen.bench import check, operands, runner, worker
from kgen.bench.check import Checker
from kgen.bench.operands import RandomBlock
from kgen.bench.report import Environment
from kgen.bench.runner import Bench
from kgen.bench.timing import Policy
from kgen.cublas_abi import find_cublas
from kgen.runtime import Card
from kgen.telemetry import Reading

CARD = Card("host memory", (9, 0), 4, 64 << 10, 1 << 30, "0000:00:00.0", 13000, 13000)


class HostBuffer:
    """`DeviceBuffer` in host memory, aligned as cudaMalloc aligns."""

    def __init__(self, size: int):
        self.size = size
        self._memory = ctypes.create_string_buffer(size + 256)
        self.ptr = -(-ctypes.addressof(self._memory) // 256) * 256

    def free(self) -> None:
        self._memory = None

    def fill_byte(self, value: int, stream: object) -> None:
        ctypes.memset(self.ptr, value, self.size)


class HostStream:
    handle = 0

    def synchronize(self) -> None:
        pass


class HostClock:
    """Everything is synchronous, so host time is device time."""

    def __init__(self) -> None:
        self._stamps: list[float] = []

    def mark(self) -> int:
        self._stamps.append(time.perf_counter())
        return len(self._stamps) - 1

    def seconds_between(self, start: int, end: int) -> float:
        return self._stamps[end] - self._stamps[start]

    def synchronize(self) -> None:
        pass

    def reset(self) -> None:
        self._stamps.clear()

    def host_seconds(self) -> float:
        return time.perf_counter()

    def fill(self, seconds: float) -> None:
        pass


class HostSampler:
    def start(self) -> None:
        pass

    def stop(self) -> Reading:
        return Reading("nobody", 1, 1000.0, 1000.0, 1000.0, 100.0)


def use_host_memory() -> None:
    """Replace what the benchmark knows of CUDA, in this process."""
    for module in (operands, check):
        module.DeviceBuffer = HostBuffer
        module.copy = ctypes.memmove
    check.HostComparer.__init__.__defaults__ = (ctypes.memmove, 1 << 10)
    operands.synchronize = lambda: None
    runner.memory_info = lambda: (1 << 28, 1 << 28)


def open_host_bench(dtype_in: str, policy: Policy, lt_algorithms: int, lt_keep: int) -> Bench:
    """`open_bench` for the card of host memory."""
    folder = os.environ.get("KGEN_CUBLAS_DIR")
    found, note = find_cublas([Path(folder)] if folder else [])
    stream = HostStream()
    gemm = CublasGemmEx(found, 0) if found else None
    return Bench(
        card=CARD,
        stream=stream,
        clock=HostClock(),
        sampler=HostSampler(),
        checker=Checker(stream, gemm, None),
        block=RandomBlock(dtype_in, policy.seed, elements=4099),
        policy=policy,
        gemm=gemm,
        lt=CublasLt(found, 0, HostBuffer(1 << 10)) if found else None,
        lt_algorithms=lt_algorithms,
        lt_keep=lt_keep,
        environment=Environment(CARD.name, 4, CARD.l2_bytes, 13000, gemm.version if gemm else None, note),
        notes=[] if found else [note],
    )


if __name__ == "__main__":
    use_host_memory()
    worker.open_bench = open_host_bench
    sys.exit(worker.main())
