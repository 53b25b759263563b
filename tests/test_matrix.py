"""Everything that sm_100a kernels may be made of, over six shapes and over twenty timings: presets, changes of their
kinds and layouts, epilogues (these on both architectures).

The timings run on few elements that still wrap every ring, with all tiles on one CTA or pair, and once in exact
arithmetic. `make test-slow`; what runs every time stands in test_emulation.py, test_rungs.py, kinds/ and epilogue/.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest
from variants import BLACKWELL, variant_plan, variant_project

from kgen import emulation
from kgen.build import compile_ptx
from kgen.plan import make_plan
from kgen.presets import all_presets
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / folder) for folder in ("kinds", "epilogue", "mutation", "protocol")]
import chains  # noqa: E402
import engine  # noqa: E402
import kinds  # noqa: E402

PRESETS = {p.reference: p for p in all_presets("gemm", "sm_100a")}
CHAINS = {f"{name}-{arch}": (arch, *rest) for name, rest in chains.CHAINS.items() for arch in chains.ARCHS}
CHAINS |= {f"long-{arch}": (arch, chains.LONG, "tile.n=128") for arch in chains.ARCHS}
HALVES = {f"fp16-{name}": name for name in PRESETS if PRESETS[name].step}
SUBJECTS = [*PRESETS, *HALVES, *kinds.CHANGED, *BLACKWELL, *CHAINS]
SEEDS = 20

pytestmark = pytest.mark.slow


@cache
def made(name: str):
    """(plan, files)."""
    if name in PRESETS or name in HALVES:
        text = PRESETS[HALVES.get(name, name)].text
        if name in HALVES:
            text = set_values(text, ["dtype.input=fp16", "dtype.output=fp16"])
        plan = make_plan(parse_spec(text).spec)
        return plan, render_project(plan, text)
    if name in kinds.CHANGED:
        return kinds.plan_of(name), kinds.project_of(name)
    if name in BLACKWELL:
        return variant_plan(name), variant_project(name)
    return chains.project(*CHAINS[name])


def proven(name: str, directory, **options):
    plan, files = made(name)
    for path, text in files.items():
        (directory / path).write_text(text)
    ptx = compile_ptx(directory, plan.arch).artifact.read_text()
    proof = emulation.prove(plan, ptx, **options)
    assert proof.exit_code == 0, [c for c in proof.cases if not c.ok]
    return proof.cases


def six_shapes(plan) -> list[emulation.Shape]:
    """The plan's shapes; a kernel of one tile has five, and this one."""
    found = emulation.shapes(plan)
    return found if len(found) > 5 else [*found, (plan.cta_tile[0] - 1, 2, found[0][2])]


@pytest.mark.parametrize("name", SUBJECTS)
def test_six_shapes(name, tmp_path):
    chosen = six_shapes(made(name)[0])
    assert len(chosen) >= 6
    assert len(proven(name, tmp_path, only=chosen)) >= 12


@pytest.mark.parametrize("name", SUBJECTS)
def test_twenty_timings_and_exact_arithmetic(name, tmp_path, monkeypatch):
    plan = made(name)[0]
    monkeypatch.setattr(emulation, "SM_COUNT", plan.launch.cluster_size)
    m, n, k = engine.smallest(plan)
    shape = [(m, n + n % 2 if plan.pairs else n, k)]
    if plan.one_tile:
        shape = [(plan.cta_tile[0] - 3, plan.cta_tile[1] - 6, min(k, max(s[2] for s in emulation.shapes(plan))))]
    found = proven(name, tmp_path, only=shape, kinds=("normal",), seeds=SEEDS)
    found += proven(name, tmp_path, only=shape, kinds=("normal",), arithmetic="exact")
    assert len(found) == SEEDS + 1
