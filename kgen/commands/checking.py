"""`kgen check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import say, say_json


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    target: Annotated[
        str, typer.Argument(metavar="SPEC|DIR|PRESET", help="Spec file, project directory or preset.")
    ] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the counter-example, if there is one.")
    ] = None,
) -> None:
    """Prove that a kernel's barriers can neither hang nor race, or show how they do.

    Needs no compiler and no card. Exit code 1: a property fails.
    """
    from kgen.commands.sources import source
    from kgen.protocol import check_plan
    from kgen.protocol.facts import broken_facts, facts_of
    from kgen.protocol.report import report, to_json

    plan = source(target).plan
    broken, outcome = broken_facts(plan), check_plan(plan)
    if as_json:
        say_json(to_json(outcome) | {"facts": list(facts_of(plan)), "broken_facts": [str(b) for b in broken]})
    else:
        say(report(outcome))
        for b in broken:
            say(f"{plan.name}: {b}")
        if not broken:
            say(f"hold: {', '.join(facts_of(plan))}")
        if outcome.why and outcome.k_tiles and outcome.k_tiles[0] > 0:
            say(f"not asked: 0 k tiles, because {outcome.why}")
    if svg and outcome.violation:
        _draw(svg, outcome)
    if broken or not outcome.proven:
        raise typer.Exit(1)


def _draw(path: Path, outcome) -> None:
    from kgen.errors import UsageError
    from kgen.protocol.svg import svg

    try:
        path.write_text(svg(outcome.name, outcome.violation), encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{path}: cannot be written: {e.strerror}") from None
