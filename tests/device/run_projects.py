"""Builds every project of a folder in parallel and runs its self-check on the card, a few at a time.

    python3 run_projects.py FOLDER [--jobs 16] [--at-once 4] [--only TEXT] [--build-only]

A project has a Makefile with the target build/NAME and may have a file `shapes`, a line "m n k" for each run; without
one the program chooses. Prints a line per failure and a summary; exit code 0 only if everything was built and right.
Standard library only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUILD_SECONDS, RUN_SECONDS = 300, 60
WORDS = {0: "right", 1: "WRONG", 2: "ERROR", 3: "NO CARD", 4: "HUNG"}


def call(command: list[str], directory: Path, seconds: int) -> tuple[int, str]:
    """Exit code (4 where it took too long) and the end of what it said."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 4, f"more than {seconds} s"
    return done.returncode, " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])


def build(project: Path) -> tuple[Path, int, str]:
    return (project, *call(["make", "-s", f"build/{project.name}"], project, BUILD_SECONDS))


def run(case: tuple[Path, list[str]]) -> tuple[str, int, str]:
    project, shape = case
    return (f"{project.name} {' '.join(shape)}", *call([f"build/{project.name}", *shape], project, RUN_SECONDS))


def shapes(project: Path) -> list[list[str]]:
    listed = project / "shapes"
    return [line.split() for line in listed.read_text().splitlines()] if listed.is_file() else [[]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds and runs self-checking projects.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-once", type=int, default=4, help="programs on the card at the same time")
    parser.add_argument("--only", default="", help="projects whose name contains this")
    parser.add_argument("--build-only", action="store_true")
    args = parser.parse_args()
    projects = sorted(p.parent for p in args.folder.glob("*/Makefile") if args.only in p.parent.name)
    if not projects:
        sys.exit(f"no projects in {args.folder}")
    start = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:
        broken = {project: said for project, code, said in pool.map(build, projects) if code}
    for project, said in broken.items():
        print(f"NOT BUILT {project.name}: {said}")
    print(f"built {len(projects) - len(broken)} of {len(projects)} in {time.monotonic() - start:.0f} s", flush=True)
    if args.build_only:
        return bool(broken)
    start, told = time.monotonic(), Counter()
    cases = [(project, shape) for project in projects if project not in broken for shape in shapes(project)]
    with ThreadPoolExecutor(args.at_once) as pool:
        for name, code, said in pool.map(run, cases):
            word = WORDS.get(code, f"EXIT {code}")
            told[word] += 1
            if code:
                print(f"{word:9s} {name}: {said}", flush=True)
    counts = ", ".join(f"{n} {word}" for word, n in sorted(told.items()))
    print(f"ran {sum(told.values())} checks of {len(projects) - len(broken)} projects in "
          f"{time.monotonic() - start:.0f} s: {counts}")  # fmt: skip
    return bool(broken) or set(told) != {"right"}


if __name__ == "__main__":
    sys.exit(main())
