"""The process that holds the card: `python -m kgen.bench.worker FD` (see `kgen.bench.job`).

It may hang in a kernel or lose its context; its parent watches it, ends it and starts another.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any, TextIO

from kgen.bench.job import OPENING, Job
from kgen.bench.runner import ContestantCrash, measure_shape, open_bench
from kgen.errors import KgenError
from kgen.runtime import GemmLibrary


def work(job: Job, channel: TextIO) -> int:
    """Measure the job's shapes and tell of them on the channel. Returns the exit code."""

    def tell(kind: str, **content: Any) -> None:
        channel.write(json.dumps({"type": kind, **content}) + "\n")
        channel.flush()

    index, phase = job.first, ""
    try:
        tell("at", index=index, phase=OPENING, label="")
        bench = open_bench(job.shapes[index].dtype_in, job.policy, job.lt_algorithms, job.lt_keep)
        tell("environment", environment=dataclasses.asdict(bench.environment), notes=bench.notes)
        libraries = [(label, GemmLibrary(path, name)) for label, path, name in job.libraries]
    except KgenError as error:
        tell("error", what=str(error), exit_code=error.exit_code)
        return error.exit_code
    for index in range(job.first, len(job.shapes)):

        def progress(now: str, label: str, index: int = index) -> None:
            nonlocal phase
            phase = now
            tell("at", index=index, phase=now, label=label)

        try:
            result = measure_shape(bench, job.shapes[index], libraries, job.skips(index), progress)
        except ContestantCrash as crash:
            tell("crash", index=index, label=crash.label, what=crash.what)
            return 1
        except KgenError as error:  # of no one contestant: memory, or cuBLAS on the reference
            tell("crash", index=index, label="", what=f"{phase}: {error}")
            return 1
        tell("shape", index=index, result=dataclasses.asdict(result))
    tell("done")
    return 0


def main() -> None:
    """Entry point; the argument is the number of the pipe's file descriptor."""
    job = Job.from_json(sys.stdin.read())
    with os.fdopen(int(sys.argv[1]), "w") as channel:
        code = work(job, channel)
        channel.flush()
    # Without the interpreter's farewell: freeing memory of a lost context can hang or crash.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
