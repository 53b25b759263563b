"""Runs on a Hopper card: every preset over the shapes of truth_runs.py; writes each result's bits to recorded.json.

    python record.py        # builds in a temporary directory; about a minute
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from truth_runs import digest, kernels, problems

from kgen.build import build_library
from kgen.emulation import surrounded
from kgen.render import render_project
from kgen.runtime import DeviceBuffer, GemmLibrary, check, cudart, open_card


def build(kernel, root: Path) -> GemmLibrary:
    directory = root / kernel.key.replace(" ", "_")
    directory.mkdir()
    for path, text in render_project(kernel.plan, kernel.text).items():
        (directory / path).write_text(text)
    return GemmLibrary(build_library(directory, kernel.plan.arch).artifact, kernel.plan.name)


def on_card(library: GemmLibrary, plan, problem) -> np.ndarray:
    m, n, k = problem.shape
    kind = {"bf16": problem.a.stored.dtype, "fp16": np.float16, "fp32": np.float32}[plan.output.name]
    nothing = np.frombuffer(b"\xff" * (m * n * plan.output.bytes), kind).reshape(m, n)
    host = {"a": problem.a.stored, "b": problem.b.stored, "d": nothing}
    host = {o: surrounded(values, problem.strides[o]) for o, values in host.items()}
    rt = cudart()
    buffers = {o: DeviceBuffer(array.nbytes) for o, array in host.items()}
    for o, array in host.items():
        check(rt.cudaMemcpy(buffers[o].ptr, array.ctypes.data, array.nbytes, rt.cudaMemcpyKind.cudaMemcpyHostToDevice))
    library.launch(*(buffers[o].ptr for o in "abd"), m, n, k, *(problem.strides[o] for o in "abd"))
    check(rt.cudaDeviceSynchronize())
    d = host["d"]
    check(rt.cudaMemcpy(d.ctypes.data, buffers["d"].ptr, d.nbytes, rt.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    return d[:m, :n]


def main() -> None:
    card = open_card()
    chosen = list(kernels())
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = list(pool.map(lambda kernel: build(kernel, Path(root)), chosen))
        rows = {}
        for kernel, library in zip(chosen, libraries, strict=True):
            for name, problem in problems(kernel.plan):
                d = on_card(library, kernel.plan, problem)
                rows[f"{kernel.key} {name}"] = [digest(problem.a.stored, problem.b.stored), digest(d)]
    out = Path(__file__).parent / "recorded.json"
    out.write_text(json.dumps({"card": card.name, "runs": rows}, indent=0, sort_keys=True) + "\n")
    print(f"{len(rows)} runs on {card.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
