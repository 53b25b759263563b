"""Runs every instruction on a Hopper card and writes what it said to `measured.json`: a digest of each form's results.

    python tests/device/instruction_truth/measure.py [--output PATH] [--results PATH.npz]

The driver compiles the PTX; a form that it refuses is recorded as such. `--results` keeps the results themselves, to
look into a difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from cuda.bindings import driver

sys.path.insert(0, str(Path(__file__).parent))
import instructions as ins

HERE = Path(__file__).parent


def call(function, *arguments):
    error, *results = function(*arguments)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{function.__name__}: {error.name}")
    return results[0] if results else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=HERE / "measured.json")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    call(driver.cuInit, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0)))
    words, results = ins.inputs(), np.zeros(ins.COUNT, np.uint64)
    source, target = call(driver.cuMemAlloc, words.nbytes), call(driver.cuMemAlloc, results.nbytes)
    call(driver.cuMemcpyHtoD, source, words.ctypes.data, words.nbytes)
    records, refused, kept = {}, {}, {}
    for number, (text, *_) in enumerate(ins.forms()):
        try:
            module = call(driver.cuModuleLoadData, ins.module(number).encode() + b"\0")
        except RuntimeError as e:
            refused[text] = str(e)
            continue
        kernel = call(driver.cuModuleGetFunction, module, b"k")
        pointers = [np.array([int(p)], np.uint64) for p in (target, source)]
        table = np.array([p.ctypes.data for p in pointers], np.uint64)
        call(driver.cuLaunchKernel, kernel, ins.BLOCKS, 1, 1, ins.THREADS, 1, 1, 0, 0, table.ctypes.data, 0)
        call(driver.cuCtxSynchronize)
        call(driver.cuMemcpyDtoH, results.ctypes.data, target, results.nbytes)
        call(driver.cuModuleUnload, module)
        records[text] = ins.digest(text, words, results)
        kept[text] = results.copy()
    if options.results:
        np.savez_compressed(options.results, **kept)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in records.items())
    options.output.write_text(f'{{"refused": {json.dumps(refused)},\n"records": {{\n{lines}\n}}}}\n')
    print(json.dumps({"records": len(records), "refused": refused}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
