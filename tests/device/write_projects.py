"""Writes the drawn specs as complete projects, one folder each, for a card: python write_projects.py [FOLDER]

Each carries the shapes to be checked in a file `shapes`. run_projects.py, which needs neither this repository nor any
Python package, builds and runs them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "protocol")]

from drawn_specs import drawn_specs, odd_shapes  # noqa: E402

from kgen.protocol import certify  # noqa: E402
from kgen.render import render_project  # noqa: E402


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".exp" / "random_specs"
    for old in root.glob("drawn_*"):
        shutil.rmtree(old)
    for drawn in drawn_specs():
        directory = root / drawn.name
        directory.mkdir(parents=True)
        files = render_project(drawn.plan, drawn.text, certify(drawn.plan))
        shapes = odd_shapes(drawn.plan)
        if not drawn.plan.one_tile:  # more tiles than a card has CTAs, and rings that wrap several times
            (block_m, block_n, block_k), stages = drawn.plan.cta_tile, drawn.plan.stages
            shapes.append((37 * block_m - 1, 23 * block_n - 3, (2 * stages + 1) * block_k - 7))
        files["shapes"] = "".join(f"{m} {n} {k}\n" for m, n, k in shapes)
        for path, text in files.items():
            (directory / path).write_text(text)
    print(f"{len(drawn_specs())} projects in {root}")


if __name__ == "__main__":
    main()
