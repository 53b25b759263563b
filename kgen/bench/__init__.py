"""Benchmarks of built GEMM projects beside cuBLAS and cuBLASLt.

    from kgen.bench import bench_gemm
    library = GemmLibrary("build/libgemm_step9.so", "gemm_step9")
    report = bench_gemm([("step 9", library)], [(8192, 8192, 8192)])

The method is told in `kgen.bench.timing`, the report in `kgen.bench.report`.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kgen.bench.collector import Collector
from kgen.bench.job import Job
from kgen.bench.report import BenchReport
from kgen.bench.timing import Policy
from kgen.bench.watchdog import watch
from kgen.errors import UsageError
from kgen.runtime import GemmLibrary, GemmShape

__all__ = ["BenchReport", "Policy", "bench_gemm"]

WORKER = (sys.executable, "-m", "kgen.bench.worker")
RESERVED_LABELS = ("cublas",)  # a label must not look like a baseline's


def bench_gemm(
    libraries: Sequence[tuple[str, GemmLibrary]],
    shapes: Sequence[tuple[int, int, int] | GemmShape],
    dtype_in: str = "bf16",
    dtype_out: str = "bf16",
    reps: int = 100,
    *,
    policy: Policy | None = None,
    limit_s: float = 60.0,
    ld_multiple: int = 1,
    lt_algorithms: int = 16,
    lt_keep: int = 3,
    on_progress: Callable[[str], None] | None = None,
    worker: Sequence[str] = WORKER,
) -> BenchReport:
    """Time libraries on shapes (m, n, k) in one interleaved run per shape, and check what they computed.

    `reps` timed launches of each (in place of the policy's `rounds`); rows are padded to `ld_multiple`
    elements. `lt_algorithms` of cuBLASLt are tried, and the `lt_keep` fastest run with the others. All GPU
    work happens in a child process; if it is silent for `limit_s` (plus the time budget of a shape), the
    contestant or shape it was at is reported as hung and the rest goes on in a new child.

    Raises `UsageError` for labels and shapes that cannot be, `NoDeviceError` without a card, and
    `DeviceError` where the worker fails before it comes to measure.
    """
    labels = [label for label, _ in libraries]
    if not labels or not shapes:
        raise UsageError("nothing to measure: name at least one library and one shape")
    if len(set(labels)) != len(labels):
        raise UsageError(f"labels must differ: {', '.join(labels)}")
    for label in labels:
        if label.lower().startswith(RESERVED_LABELS):
            raise UsageError(f"{label}: labels that begin with cublas are the baselines'")
    policy = policy or Policy()
    job = Job(
        shapes=[
            shape
            if isinstance(shape, GemmShape)
            else GemmShape.packed(*shape, dtype_in, dtype_out, ld_multiple)
            for shape in shapes
        ],
        libraries=[(label, str(library.path), library.name) for label, library in libraries],
        policy=dataclasses.replace(policy, rounds=reps),
        lt_algorithms=lt_algorithms,
        lt_keep=lt_keep,
    )
    collector = Collector(job, on_progress or (lambda _: None))
    while collector.unfinished:
        ending = watch(worker, job.to_json(), limit_s + policy.budget_s, collector.take, env=_environment())
        collector.settle(ending, limit_s + policy.budget_s)
    return BenchReport(
        dtype_in=job.shapes[0].dtype_in,
        dtype_out=job.shapes[0].dtype_out,
        environment=collector.environment,
        shapes=tuple(collector.results[index] for index in range(len(job.shapes))),
        notes=tuple(collector.notes),
    )


def _environment() -> dict[str, str]:
    """The environment with this kgen first on the worker's path."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root}
