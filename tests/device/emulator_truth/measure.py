"""Build and run the experiments on a Hopper card and write what it said to `measured.json`.

    python tests/device/emulator_truth/measure.py [--binary PATH] [--output PATH]

`test_measured.py` then compares the emulator with that file on every machine. Every experiment is a process
of its own with a time limit, because a bad descriptor may take the context down; the whole run ends after
TOTAL_SECONDS whatever happens.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import packing
import truth_cases as cases

HERE = Path(__file__).parent
TOTAL_SECONDS = 55
ONE_SECONDS = 18  # the program's own watchdog fires first
# What these do is the question; an illegal instruction is an answer.
MAY_FAIL = {
    "tma_store_negative",
    "tma_store_negative_c0",
    "tma_store_negative_c1",
    "tma_unaligned_start",
    "tma_unaligned_store",
}
ROWS_KEPT = 2  # of each D; the rest is covered by its hash


def build(binary: Path) -> None:
    command = ["nvcc", "-std=c++17", "-O1", "-Werror", "all-warnings"]
    command += ["-gencode", "arch=compute_90a,code=sm_90a"]
    subprocess.run([*command, "-o", str(binary), str(HERE / "truth.cu")], check=True)


def run(binary: Path, arguments: list[str], deadline: float) -> tuple[list[dict], str | None]:
    """The JSON objects a process printed, and what went wrong if anything did."""
    left = deadline - time.monotonic()
    if left <= 0:
        return [], "not run: out of time"
    try:
        done = subprocess.run(
            [str(binary), *arguments], capture_output=True, text=True, timeout=min(left, ONE_SECONDS)
        )
    except subprocess.TimeoutExpired:
        return [], "timed out"
    records, problem = [], None if done.returncode == 0 else f"exit code {done.returncode}"
    for line in done.stdout.splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # the process died in the middle of a line
            problem = f"{problem}: {line[-200:]}"
            continue
        if "error" in record:
            problem = f"{problem}: {record['error']}"
        else:
            records.append(record)
    return records, problem


def packed_hex(record: dict) -> dict:
    """Long hex strings in their compressed form."""
    out = {}
    for key, value in record.items():
        if isinstance(value, str) and len(value) > 2 * packing.LONG:
            out |= packing.packed(key, bytes.fromhex(value))
        else:
            out[key] = value
    return out


def numerics(binary: Path, kind: int, deadline: float) -> tuple[list[dict], str | None]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        blob = b""
        for case in cases.CASES:
            a, b, c = cases.inputs(kind, case)
            blob += a.tobytes() + b.tobytes() + c.astype(np.uint32).tobytes()
        source.write_bytes(blob)
        _, problem = run(binary, ["numerics", str(kind), str(source), str(target)], deadline)
        data = target.read_bytes() if target.exists() else b""
    size = 4 * cases.M * cases.N
    records = []
    for i, case in enumerate(cases.CASES):
        d = data[i * size : (i + 1) * size]
        if len(d) < size:
            break
        records.append(
            {
                "experiment": "numerics",
                "kind": kind,
                "case": case,
                "sha256": hashlib.sha256(d).hexdigest(),
                **packing.packed("first_rows", d[: ROWS_KEPT * 4 * cases.N]),
            }
        )
    return records, problem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, help="use this build instead of compiling")
    parser.add_argument("--output", type=Path, default=HERE / "measured.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        binary = options.binary or Path(folder, "truth")
        if not options.binary:
            build(binary)
        listing = subprocess.run([str(binary), "--list"], capture_output=True, text=True, check=True)
        names = listing.stdout.split()
        deadline = time.monotonic() + TOTAL_SECONDS
        records, problems = [], {}
        for name in names:
            got, problem = run(binary, [name], deadline)
            records += [packed_hex(r) for r in got]
            if problem:
                problems[name] = problem
        for kind in cases.KINDS:
            got, problem = numerics(binary, kind, deadline)
            records += got
            if problem:
                problems[f"numerics {kind}"] = problem
    lines = ",\n".join(json.dumps(r) for r in records)
    head = f'"problems": {json.dumps(problems)},\n"ran": {json.dumps(names)}'
    options.output.write_text(f'{{{head},\n"records": [\n{lines}\n]}}\n')
    print(json.dumps({"records": len(records), "problems": problems}))
    return 1 if problems and set(problems) - MAY_FAIL else 0


if __name__ == "__main__":
    sys.exit(main())
