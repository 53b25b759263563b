"""`kgen build`, `kgen test` and `kgen bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import console, say, say_json, working
from kgen.errors import UsageError
from kgen.plan.common import GemmPlan


def register(app: typer.Typer) -> None:
    app.command("build")(build)
    app.command("test")(test)
    app.command("bench")(bench)


def build(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Project directory.")] = Path("."),
    ptx: Annotated[bool, typer.Option("--ptx", help="PTX instead of the library.")] = False,
    cubin: Annotated[
        bool, typer.Option("--cubin", help="Machine code: the quickest that passes the gate.")
    ] = False,
    executable: Annotated[bool, typer.Option("--executable", help="The self-checking program.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Build even what the protocol checker refuses.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Compile a project; a warning, a spill or a serialised wgmma fails it."""
    from kgen import build as builder
    from kgen.commands.sources import project

    if ptx + cubin + executable > 1:
        raise UsageError("choose one of --ptx, --cubin and --executable")
    choices = [
        (ptx, builder.compile_ptx),
        (cubin, builder.compile_cubin),
        (executable, builder.build_executable),
        (True, builder.build_library),
    ]
    make = next(function for chosen, function in choices if chosen)
    found = project(directory)
    if not unchecked:
        found.certificate()
    with working(f"compiling {found.plan.name}"):
        report = make(directory, found.plan.arch)
    if as_json:
        return say_json(report.to_json() | {"artifact": str(directory / "build" / report.artifact.name)})
    _print_report(report, directory)


def _print_report(report, directory: Path) -> None:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for name in ("kernel", "registers", "spill bytes", "stack bytes", "barriers"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for k in (k for k in report.kernels if k.entry):
        spilled = k.spill_stores + k.spill_loads
        table.add_row(k.short_name, str(k.registers), str(spilled), str(k.stack_frame), str(k.barriers))
    if report.kernels:
        console().print(table)
    state = "was up to date; it took" if report.cached else "took"
    cost = f"{report.seconds:.2f} s and {report.peak_rss_mb:.0f} MB"
    say(f"{directory / 'build' / report.artifact.name} {state} {cost}")
    if not report.kernels:
        say(
            "PTX has passed no assembler, so registers and spills are unknown; "
            "`kgen build --cubin` shows them"
        )


def test(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Project directory.")] = Path("."),
    limit: Annotated[float, typer.Option(help="Seconds of silence that count as a hang.")] = 120.0,
    emulate: Annotated[bool, typer.Option("--emulate", help="In the emulator, even beside a matching card.")] = False,
    on_card: Annotated[bool, typer.Option("--card", help="On a card or not at all.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Build a project and run its own tests on the card; without a matching one, its PTX in the emulator.

    Exit code 0: all right; 1: a case failed; 3: --card and no matching card, so only the compile gate was run;
    4: a case hung.
    """
    from kgen.build import build_library
    from kgen.commands.sources import project
    from kgen.device import cards
    from kgen.proving import Proof, prove

    found = project(directory)
    name, arch = found.plan.name, found.plan.arch
    test_file = directory / f"test_{name}.py"
    if not test_file.is_file():
        raise UsageError(f"{test_file} is missing; `kgen render {directory}` writes it")
    with working(f"compiling {name}"):
        report = build_library(directory, arch)
    have, why_not = cards()
    fits = bool(have) and have[0].arch == arch
    here = f"the card here is {have[0].name}" if have else why_not or "the driver shows no card"
    needs = f"needs a card of {arch.name} ({arch.product}); {here}"
    if fits and not emulate:
        with working(f"testing {name} on {have[0].name}") as tell:
            proof = prove(test_file, limit, tell)
    elif on_card:
        proof = Proof(unproven=needs)
    else:
        from kgen.build import compile_ptx
        from kgen.emulation import prove as prove_emulated

        ptx = compile_ptx(directory, arch).artifact.read_text()
        with working(f"emulating {name}") as tell:
            proof = prove_emulated(found.plan, ptx, tell)
        if not as_json and not emulate:
            say(f"no run on a card: it {needs}")
    if as_json:
        say_json(proof.to_json() | {"kernel": name, "gate": report.to_json()})
    else:
        print_proof(proof, name)
    raise typer.Exit(proof.exit_code)


def print_proof(proof, name: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    if proof.cases:
        table = Table(show_edge=False, pad_edge=False)
        for column in ("", "case", "error", "limit", "seconds", "note"):
            table.add_column(column, justify="right" if column in ("error", "limit", "seconds") else "left")
        for c in proof.cases:
            mark = "[green]ok[/green]" if c.ok else "[red]WRONG[/red]"
            table.add_row(
                mark, escape(c.case), f"{c.error:.3g}", f"{c.limit:.3g}", f"{c.seconds:.2f}", escape(c.note)
            )
        console().print(table)
    right = len(proof.cases) - len(proof.failed)
    if proof.hung:
        say(f"{name}: HUNG on {proof.running or 'no announced case'}; {right} cases before it were right")
    elif proof.unproven:
        say(f"{name}: NOT PROVEN: {proof.unproven}")
        say("it compiles: no warning, no spill, no serialised wgmma (the compile gate); nothing was run")
    elif proof.exit_code:
        say(f"{name}: FAILED: {len(proof.failed)} of {len(proof.cases)} cases are wrong")
        if proof.running:
            say(f"the test ended in {proof.running}")
        if not proof.cases:
            say("the test file reported no case")
    elif proof.place == "emulator":
        say(f"{name}: all {right} cases are right in the emulator, which executed the compiled PTX")
    else:
        say(f"{name}: all {right} cases are right")
    if proof.exit_code not in (0, 3) and proof.output:
        say(proof.output)


def bench(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="Project directories.")
    ] = None,
    shapes: Annotated[
        list[str] | None, typer.Option("--shape", metavar="M,N,K", help="Default: the problem of the specs.")
    ] = None,
    reps: Annotated[int, typer.Option(min=1, help="Timed launches of each contestant.")] = 100,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the last shape (.svg or .png).")
    ] = None,
) -> None:
    """Time projects beside cuBLAS and cuBLASLt, interleaved, and check what they computed.

    Exit code 0: right and timed; 1: wrong or failed; 3: no matching card; 4: hung.
    """
    from kgen.build import build_library
    from kgen.commands.sources import project
    from kgen.device import cards

    found = [project(d) for d in directories or [Path(".")]]
    for p in found:
        if why := why_not_benched(p.plan):
            raise UsageError(f"{p.plan.name} {why}; its own program checks and times it (make run)")
    dtypes = {(p.plan.input.name, p.plan.output.name) for p in found}
    if len(dtypes) > 1:
        raise UsageError("projects of different element types cannot be compared; bench them one by one")
    sizes = [parse_shape(s) for s in shapes or []] or list(dict.fromkeys(p.plan.problem for p in found))
    arch = found[0].plan.arch
    have, why_not = cards()
    if not have or have[0].arch != arch:
        here = f"the card here is {have[0].name}" if have else why_not or "the driver shows no card"
        say(f"nothing measured: it needs a card of {arch.name} ({arch.product}); {here}")
        raise typer.Exit(3)
    from kgen.bench import bench_gemm
    from kgen.bench.table import print_report
    from kgen.runtime import GemmLibrary

    libraries = []
    for p in found:
        with working(f"compiling {p.plan.name}"):
            built = build_library(p.directory, p.plan.arch)
        libraries.append((p.plan.name, GemmLibrary(built.artifact, p.plan.name)))
    dtype_in, dtype_out = dtypes.pop()
    with working("measuring") as tell:
        report = bench_gemm(libraries, sizes, dtype_in, dtype_out, reps, on_progress=tell)
    if json_file:
        report.write_json(json_file)
    print_report(report, console())
    if plot:
        from kgen.plot import write_ladder

        write_ladder(report.shapes[-1], plot)
    raise typer.Exit(report.exit_code)


def why_not_benched(plan: GemmPlan) -> str | None:
    """Why the benchmark, which makes operands, checks results and asks cuBLAS for row-major bf16 and fp16, cannot take
    a project; None where it can."""
    from kgen.runtime import INPUT_DTYPES, OUTPUT_DTYPES

    only = "and bench makes, checks and compares"
    if plan.input.name not in INPUT_DTYPES:
        return f"multiplies {plan.input_names}, {only} {' and '.join(INPUT_DTYPES)} only"
    if plan.output.name not in OUTPUT_DTYPES:
        return f"stores {plan.output.name}, {only} {', '.join(OUTPUT_DTYPES)} only"
    if plan.layout != ("k", "k"):
        return f"takes operands {plan.arrangement}, {only} A[m, k] and B[n, k] only"
    if plan.finish:
        words = ", ".join(plan.finish.words)
        return f"has epilogue.ops ({words}), and what it would be measured against computes the product alone"
    return None


def parse_shape(text: str) -> tuple[int, int, int]:
    """`M,N,K`, or one number for a cube."""
    parts = text.replace("x", ",").split(",")
    sizes = [int(p) if p.strip().isdecimal() else 0 for p in parts]
    sizes = sizes * 3 if len(sizes) == 1 else sizes
    if len(sizes) != 3 or min(sizes) < 1:
        raise UsageError(f"--shape {text!r} is not M,N,K, as in 4096,4096,4096")
    return sizes[0], sizes[1], sizes[2]
