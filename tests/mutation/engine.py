"""One mutant's fate: compiled to PTX and emulated until a case fails, and its protocol checked."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from from_kernel import program_of_source
from table import Mutant

from kgen import emulation
from kgen.build import compile_ptx
from kgen.errors import BuildError
from kgen.protocol import tiles_per_cta
from kgen.protocol.explore import check
from kgen.proving import Case
from kgen.render import render_project

SEEDS = 3


@dataclass(frozen=True)
class Fate:
    group: str
    name: str
    emulator: str  # what failed first, "" if nothing did
    protocol: str  # the violated property; "" if it is proven, "-" where the mutation does not exist there
    compiles: bool = True

    @property
    def caught(self) -> bool:
        return bool(self.emulator) or self.protocol not in ("", "-")


def smallest(plan) -> emulation.Shape:
    """Few elements, but several tiles per CTA, every ring round more than once, tails on all sides."""
    tile_m, tile_n = plan.cluster_tile
    tiles = 3 if plan.schedule in ("persistent", "clc") else 1
    k_tiles = plan.stages // 2 + 1 if len(plan.roles) > 1 else plan.stages + 2
    k = k_tiles * plan.cta_tile[2] - (6 if plan.scales else 5)  # two elements to a byte
    if plan.scales:  # those of B depend on the column
        return tile_m + 7, 2 * tile_n - 3, k
    return (tiles - 1) * tile_m + 7, tile_n - 3, k


def compiled(plan, source: str) -> str:
    """PTX, where wrappers that are no longer called are no mistake. Raises BuildError."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for name, text in render_project(plan, "").items():
            if name.endswith(".h"):
                (folder / name).write_text(text)
        (folder / f"{plan.name}.cu").write_text(source)
        return compile_ptx(folder, plan.arch, strict=False).artifact.read_text()


def emulated(plan, source: str, seeds: int = SEEDS) -> str:
    """What the emulator says against a source; "" for nothing. Raises BuildError."""
    ptx = compiled(plan, source)
    count, emulation.SM_COUNT = emulation.SM_COUNT, plan.launch.cluster_size  # one CTA, or pair, takes all tiles
    try:
        problem = emulation.make_problem(plan, smallest(plan), 0, "integers")
        for seed in range(seeds):
            case: Case = emulation._case("", plan, ptx, problem, "integers", seed, "fast")
            if not case.ok:
                return case.note.split("\n")[0] or f"wrong by {case.error:g}"
    finally:
        emulation.SM_COUNT = count
    return ""


def proven(plan, source: str) -> str:
    """The property that the protocol of a source violates; "" if proven, "-" if it is the plan's own or no protocol."""
    try:
        program = program_of_source(plan, source)
    except Exception:  # it says what programs cannot
        return "-"
    if program is None:
        return "-"
    outcome = check(program, tiles_per_cta(plan))
    return "" if outcome.proven else outcome.violation.kind


def fate(plan, mutant: Mutant) -> Fate:
    protocol = proven(plan, mutant.source)
    try:
        return Fate(mutant.group, mutant.name, emulated(plan, mutant.source), protocol)
    except BuildError as error:
        return Fate(mutant.group, mutant.name, str(error).split("\n")[0], protocol, compiles=False)
