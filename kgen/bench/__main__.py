"""`python -m kgen.bench LIB.so [NAME] ... --shape M,N,K`: time built projects beside cuBLAS.

Needs numpy, ml_dtypes, rich and cuda-python, and nothing else of kgen's dependencies, so that it runs on a
machine that has a card and little more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kgen.bench import bench_gemm
from kgen.bench.timing import Policy
from kgen.errors import KgenError, UsageError
from kgen.runtime import INPUT_DTYPES, OUTPUT_DTYPES, GemmLibrary


def parse_shape(text: str) -> tuple[int, int, int]:
    """`M,N,K`, or one number for a cube. Raises argparse's error for anything else."""
    try:
        extents = [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        extents = []
    if len(extents) == 1:
        extents *= 3
    if len(extents) != 3 or min(extents) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not M,N,K")
    return extents[0], extents[1], extents[2]


def parse_libraries(tokens: Sequence[str]) -> list[tuple[str, Path, str]]:
    """(label, path, name) of each `[LABEL=]LIB.so [NAME]`; a name defaults to what lib<name>.so says, a label
    to the name. Raises `UsageError` for a name without a library."""
    found: list[tuple[str, Path, str]] = []
    pending: tuple[str, Path] | None = None

    def close(name: str = "") -> None:
        if pending is not None:
            label, path = pending
            name = name or path.stem.removeprefix("lib")
            found.append((label or name, path, name))

    for token in tokens:
        if token.endswith(".so"):
            close()
            label, _, path = token.rpartition("=")
            pending = (label, Path(path))
        elif pending is None:
            raise UsageError(f"{token}: expected a library (LIB.so) before a name")
        else:
            close(token)
            pending = None
    close()
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m kgen.bench", description=__doc__.split("\n")[0])
    made.add_argument("libraries", nargs="+", metavar="[LABEL=]LIB.so [NAME]")
    made.add_argument("--shape", type=parse_shape, action="append", required=True, metavar="M,N,K")
    made.add_argument("--dtype", choices=INPUT_DTYPES, default="bf16", help="of the inputs")
    made.add_argument(
        "--out", choices=OUTPUT_DTYPES, default=None, help="of the result; default: the inputs'"
    )
    made.add_argument("--reps", type=int, default=100, help="timed launches of each contestant")
    made.add_argument("--budget", type=float, default=20.0, help="seconds of timing per shape at most")
    made.add_argument("--limit", type=float, default=60.0, help="seconds of silence that count as a hang")
    made.add_argument(
        "--ld-multiple", type=int, default=1, help="pad rows to a multiple of this many elements"
    )
    made.add_argument("--algorithms", type=int, default=16, help="cuBLASLt algorithms to try")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--json", type=Path, metavar="FILE", help="write the report")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the last shape (.svg or .png)")
    made.add_argument("--title", default="", help="of the drawing")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns the exit code: 0 right and timed, 1 wrong or failed, 2 usage, 3 no card, 4 hung."""
    given = parser().parse_args(arguments)
    try:
        libraries = [
            (label, GemmLibrary(path, name)) for label, path, name in parse_libraries(given.libraries)
        ]
        report = bench_gemm(
            libraries,
            given.shape,
            given.dtype,
            given.out or given.dtype,
            given.reps,
            policy=Policy(budget_s=given.budget, seed=given.seed),
            limit_s=given.limit,
            ld_multiple=given.ld_multiple,
            lt_algorithms=given.algorithms,
            on_progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
        if given.json:
            report.write_json(given.json)
        from kgen.bench.table import print_report

        print_report(report)
        if given.plot:
            from kgen.plot import write_ladder

            write_ladder(report.shapes[-1], given.plot, given.title)
    except KgenError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
