"""`kgen explain` and `kgen schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import console, say, say_json


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)
    app.command("schema")(schema)


def explain(
    target: Annotated[
        str, typer.Argument(metavar="SPEC|DIR", help="Spec file, project directory or preset.")
    ] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False,
) -> None:
    """Show what a kernel occupies, who waits for whom, and what bounds its speed."""
    from kgen.commands.explanation import print_explanation
    from kgen.commands.sources import source
    from kgen.explain import explain as explained

    explanation = explained(source(target).plan)
    if as_json:
        say_json(explanation.to_json())
    else:
        print_explanation(explanation, console())


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: print it.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The reference for people instead.")] = False,
) -> None:
    """Print the spec's JSON Schema, for editors that complete and check YAML.

    An editor finds it through the line `# yaml-language-server: $schema=FILE` at the top of a spec.
    """
    from kgen.errors import UsageError
    from kgen.reference import spec_reference
    from kgen.schema import schema_text

    text = spec_reference() if markdown else schema_text()
    if output is None:
        return say(text.rstrip("\n"))
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{output}: cannot be written: {e.strerror}") from None
    say(f"{output}: written")
