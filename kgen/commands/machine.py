"""`kgen doctor` and `kgen vendor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import console, say


def register(app: typer.Typer) -> None:
    app.command("vendor")(vendor)
    app.command("doctor")(doctor)


def vendor(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Project directory.")] = Path("."),
    to: Annotated[Path, typer.Option("--to", help="Directory of the project that takes the kernel.")] = ...,
    force: Annotated[bool, typer.Option("--force", help="Replace files there that differ.")] = False,
) -> None:
    """Copy into another project the two files it needs: the kernel and its C header."""
    from kgen.build import nvcc_flags
    from kgen.commands.sources import project
    from kgen.vendoring import vendor_files

    found = project(directory)
    for path, what in vendor_files(directory, found.plan.name, to, force):
        say(f"{what}  {path}")
    flags = " ".join(nvcc_flags(found.plan.arch))
    say(f"build it with:  nvcc {flags} -c {to / found.plan.name}.cu")
    say("no library but the CUDA runtime is needed; `ptxas -v` must report no spill and no (C7...) remark")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False) -> None:
    """Show what of this machine kgen can use, and for what is missing, what it disables and how to get it."""
    from kgen.commands.terminal import working
    from kgen.doctor import diagnose, doctor_json, doctor_table

    with working("looking at this machine"):
        findings = diagnose()
    if as_json:
        say(doctor_json(findings))
    else:
        console().print(doctor_table(findings))
