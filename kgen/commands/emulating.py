"""`kgen emulate`: a project's PTX, or any kernel's, on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import console, say, say_json, working
from kgen.errors import UsageError


def register(app: typer.Typer) -> None:
    app.command("emulate")(emulate)


def emulate(
    target: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="Project, or a foreign .ptx or .cu.")
    ] = Path("."),
    run: Annotated[Path | None, typer.Option(metavar="RUN.yaml", help="How to launch a foreign kernel.")] = None,
    shapes: Annotated[list[str] | None, typer.Option("--shape", metavar="M,N,K", help="Of a project.")] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Timings to try: each completes asynchronous work in its own order.")
    ] = 1,
    exact: Annotated[bool, typer.Option("--exact", help="The tensor core's arithmetic bit for bit.")] = False,
    arch: Annotated[str, typer.Option(help="What to compile a foreign .cu for.")] = "sm_90a",
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Timeline of the first shape and seed for ui.perfetto.dev.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Picture of the first shape and seed.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Logical steps that --svg shows; default: until the ring has wrapped.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Execute compiled PTX with asynchronous work as late as the program allows, and say what it does wrong.

    Exit code 0: right; 1: wrong, or a check was broken.
    """
    if target.is_dir():
        if run:
            raise UsageError("--run describes a foreign kernel; a project describes itself")
        _project(target, shapes or [], seeds, exact, as_json, _Timeline(trace, svg, steps))
    else:
        _foreign(target, run, seeds, exact, arch, as_json, _Timeline(trace, svg, steps))


@dataclass
class _Timeline:
    """Where the timeline of the first run goes, if anywhere."""

    json: Path | None
    svg: Path | None
    steps: int | None

    def recorder(self, names: dict[int, str] | None = None):
        """A new Trace, or None if nobody asked for it."""
        from kgen.emulator.trace import Trace

        return Trace(names) if self.json or self.svg else None

    def write(self, recorded, title: str) -> None:
        """Writes what was asked for, also of a run that failed: its last wait is what one wants to see."""
        from kgen.emulator.timeline import timeline_svg

        if recorded is None or recorded.machine is None:
            return
        try:
            if self.json:
                recorded.write(self.json)
            if self.svg:
                self.svg.write_text(timeline_svg(recorded, title, self.steps), encoding="utf-8")
        except OSError as e:
            raise UsageError(f"the timeline cannot be written: {e}") from None


def _project(directory: Path, shapes: list[str], seeds: int, exact: bool, as_json: bool, timeline: _Timeline) -> None:
    from kgen.build import compile_ptx
    from kgen.commands.proving import parse_shape, print_proof
    from kgen.commands.sources import project
    from kgen.emulation import barrier_names, prove
    from kgen.emulation import shapes as shapes_of

    found = project(directory)
    name = found.plan.name
    with working(f"compiling {name}"):
        ptx = compile_ptx(directory, found.plan.arch).artifact.read_text()
    arithmetic = "exact" if exact else "fast"
    only = [parse_shape(s) for s in shapes] or shapes_of(found.plan)
    recorded = timeline.recorder(barrier_names(found.plan))
    with working(f"emulating {name}") as tell:
        proof = prove(found.plan, ptx, tell, only=only, seeds=seeds, arithmetic=arithmetic, trace=recorded)
    timeline.write(recorded, f"{name}, {' x '.join(map(str, only[0]))}, seed 0")
    if as_json:
        say_json(proof.to_json() | {"kernel": name})
    else:
        print_proof(proof, name)
    raise typer.Exit(proof.exit_code)


def _foreign(
    file: Path, run: Path | None, seeds: int, exact: bool, arch: str, as_json: bool, timeline: _Timeline
) -> None:
    from kgen.arch import ARCHS
    from kgen.build import compile_ptx
    from kgen.emulator.run_file import run_file

    if run is None:
        raise UsageError(f"{file}: give --run RUN.yaml: grid, block, buffers and arguments (see docs/emulator.md)")
    if file.suffix == ".cu":
        if arch not in ARCHS:
            raise UsageError(f"unknown architecture {arch!r}; there is: {', '.join(ARCHS)}")
        with working(f"compiling {file.name}"):
            file = compile_ptx(file, ARCHS[arch], strict=False).artifact
    try:
        ptx = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{file}: cannot be read: {e}") from None
    title = file.name
    rows, failed = [], False
    for seed in range(seeds):
        options = {"seed": seed} | ({"arithmetic": "exact"} if exact else {})
        recorded = timeline.recorder() if seed == 0 else None
        try:
            outcome = run_file(ptx, run, trace=recorded, **options)
        finally:
            timeline.write(recorded, f"{title}, seed {seed}")
        failed |= bool(outcome.failed or outcome.result.warnings)
        warned = outcome.result.warnings
        rows.append({"seed": seed, "errors": outcome.errors, "failed": outcome.failed, "warnings": warned})
    if as_json:
        say_json(rows)
    else:
        _print_runs(rows)
    raise typer.Exit(1 if failed else 0)


def _print_runs(rows: list[dict]) -> None:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for column in ("", "seed", "largest errors", "warnings"):
        table.add_column(column)
    for r in rows:
        wrong = r["failed"] or r["warnings"]
        errors = ", ".join(f"{name} {error:.3g}" for name, error in r["errors"].items()) or "nothing expected"
        mark = "[red]WRONG[/red]" if wrong else "[green]ok[/green]"
        table.add_row(mark, str(r["seed"]), errors, "; ".join(r["warnings"]))
    console().print(table)
    say("asynchronous work completed in a different order for each seed")
