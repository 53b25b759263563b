"""The emulator's exact arithmetic gives the bits that a Hopper card gave (recorded by record.py).

Every preset and element type is compared on a shape that wraps the rings here; KGEN_TRUTH=all compares all that was
recorded.
"""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from truth_runs import digest, kernels, problems

from kgen.build import compile_ptx
from kgen.emulation import run
from kgen.render import render_project

RECORD = json.loads((Path(__file__).parent / "recorded.json").read_text())["runs"]
KERNELS = list(kernels())
MOST = None if os.environ.get("KGEN_TRUTH") == "all" else 1


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_same_bits_as_the_card(kernel, tmp_path):
    for path, text in render_project(kernel.plan, kernel.text).items():
        (tmp_path / path).write_text(text)
    ptx = compile_ptx(tmp_path, kernel.plan.arch).artifact.read_text()
    chosen = list(problems(kernel.plan))
    chosen = chosen if MOST is None else chosen[-2:][:MOST]
    for name, problem in chosen:
        operands, expected = RECORD[f"{kernel.key} {name}"]
        assert digest(problem.a.stored, problem.b.stored) == operands, "the operands are not those of the record"
        d, intact, warnings = run(kernel.plan, ptx, problem, arithmetic="exact")
        assert digest(d) == expected, f"{kernel.key} {name}: other bits than the card's"
        assert intact and not warnings


def test_the_record_is_complete():
    wanted = {f"{k.key} {name}" for k in KERNELS for name, _ in problems(k.plan)}
    assert wanted == set(RECORD)
