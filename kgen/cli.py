"""The command line: `kgen COMMAND ...`. Each command lives in `kgen.commands` and imports what it needs when
it runs, so that scaffolding a project does not wait for compilers, drivers or numerics to load."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

# A command makes objects and ends; looking for garbage among them is a tenth of the time of a short one.
gc.set_threshold(100_000)
# Pydantic looks through every installed distribution for plugins, which takes longer than reading a spec.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer  # noqa: E402

from kgen.commands import (  # noqa: E402
    checking,
    emulating,
    machine,
    proving,
    reading,
    rendering,
    scaffolding,
)
from kgen.errors import KgenError, SpecError  # noqa: E402

app = typer.Typer(
    name="kgen",
    help="YAML kernel specs become complete, standalone, proven CUDA projects.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for module in (scaffolding, rendering, reading, checking, proving, emulating, machine):
    module.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits: 0 right, 1 failed, 2 the request or spec is wrong, 3 not proven without a
    card, 4 a run hung. An error that is the user's to read comes without a traceback."""
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="kgen")
    except SpecError as error:
        # file:line:col: first on the line, so that editors and terminals can jump there.
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KgenError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
