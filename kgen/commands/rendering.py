"""`kgen render` and `kgen diff`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import say, say_json
from kgen.errors import ProtocolError, UsageError


def register(app: typer.Typer) -> None:
    app.command("render")(render)
    app.command("diff")(diff)


def render(
    target: Annotated[
        str, typer.Argument(metavar="DIR|SPEC", help="Project directory or spec file.")
    ] = ".",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write; default: the project itself, or ./<name> for a spec."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace hand-edited files; each is kept as .orig.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Every preset, to the goldens of this checkout.")
    ] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Render even what the protocol checker refuses.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Render a project again after its spec changed; hand-edited files are never overwritten unasked."""
    if every:
        return _render_all(output, as_json)
    from kgen.commands.sources import source
    from kgen.commands.terminal import say_written, written_json
    from kgen.project import write_project

    made = source(target)
    directory = output or made.directory or Path(made.plan.name)
    report = write_project(made.files(not unchecked), directory, force)
    if as_json:
        say_json({"directory": str(directory), **written_json(report)})
    else:
        say_written(directory, report)


def _render_all(output: Path | None, as_json: bool) -> None:
    from kgen.commands.terminal import working
    from kgen.goldens import golden_root, write_goldens

    root = output or golden_root()
    with working("rendering every preset") as tell:
        report = write_goldens(root, tell)
    if as_json:
        return say_json({"written": report.written, "removed": report.removed, "unchanged": report.unchanged})
    say(f"{root}: {len(report.written)} written, {len(report.removed)} removed, {report.unchanged} unchanged")
    for what in ("written", "removed"):
        for path in getattr(report, what):
            say(f"  {what}  {path}")


def diff(
    a: Annotated[str, typer.Argument(help="Preset (8, gemm:8, sm_90a/gemm/8), spec file or project.")] = "",
    b: Annotated[str, typer.Argument(help="What to compare it with.")] = "",
    edited: Annotated[
        Path | None, typer.Option("--edits", metavar="DIR", help="Show the hand edits in a project instead.")
    ] = None,
    family: Annotated[str, typer.Option(help="Family of presets given by number alone.")] = "gemm",
    arch: Annotated[str | None, typer.Option(help="Architecture of presets given without one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Show what one spec changes against another, in the spec and in the rendered kernel."""
    from kgen.commands.sources import source
    from kgen.project import edits

    if edited is not None:
        if a or b:
            raise UsageError(
                "--edits compares a project with what it was rendered from, and takes nothing beside it"
            )
        text = edits(_as_rendered(source(str(edited))), edited)
        return say_json({"code": text}) if as_json else _say_diff(text or f"{edited}: no file differs\n")
    if not a or not b:
        raise UsageError("name two specs, as in `kgen diff 8 9`, or a project with --edits")
    from kgen.spec.difference import differences

    left, right = source(a, family, arch), source(b, family, arch)
    changes = differences(left.text, right.text)
    code = _code_diff(left, right)
    if as_json:
        return say_json(
            {"a": left.label, "b": right.label, "fields": [c.to_json() for c in changes], "code": code}
        )
    lines = [f"--- {left.label}", f"+++ {right.label}"]
    for change in changes:
        lines += [f"-{change.field}: {change.before}"] if change.before is not None else []
        lines += [f"+{change.field}: {change.after}"] if change.after is not None else []
    _say_diff("\n".join(lines) + "\n" + ("" if changes else "the specs choose the same\n") + "\n")
    _say_diff(code or "the kernels are the same\n")


def _as_rendered(made) -> dict[str, str]:
    """The files as `kgen render` wrote them, `--unchecked` where it had to be."""
    try:
        return made.files()
    except ProtocolError:
        return made.files(checked=False)


def _code_diff(left, right) -> str:
    """Unified diff of the two kernels, both under the second's name, so that a name is no difference."""
    from kgen.project import unified

    old, new = left.plan.name, right.plan.name
    before = _renamed(left.files(checked=False)[f"{old}.cu"], old, new)
    return "".join(unified(before, right.files(checked=False)[f"{new}.cu"], f"{old}.cu", f"{new}.cu"))


def _renamed(text: str, old: str, new: str) -> str:
    """`text` with a kernel's name replaced wherever it stands alone or begins or ends a longer one."""
    for a, b in ((old, new), (old.upper(), new.upper())):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(a)}(?![A-Za-z0-9])", b, text)
    return text


_COLOURS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


def _say_diff(text: str) -> None:
    """A unified diff, coloured on a terminal."""
    for line in text.splitlines():
        colour = next((c for start, c in _COLOURS if line.startswith(start)), "")
        print(f"\x1b[{colour}m{line}\x1b[0m" if colour and sys.stdout.isatty() else line)
