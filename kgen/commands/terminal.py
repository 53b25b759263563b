"""What commands say and how: plain lines at once, tables and progress through rich when they are needed."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager

from kgen.project import WriteReport


def say(line: str = "") -> None:
    """One plain line of the command's answer."""
    print(line)


def say_json(data: object) -> None:
    """The command's answer to a script."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def console():
    """rich's console on standard output; a pipe gets wide, plain lines."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)


@contextmanager
def working(what: str):
    """Says on standard error what takes a while: a spinner on a terminal, one line elsewhere.

    Yields a function that replaces the words.
    """
    from rich.console import Console

    errors = Console(stderr=True, highlight=False)
    if not errors.is_terminal:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield lambda text: None
        return
    with errors.status(what) as status:
        yield status.update


def say_written(where: object, report: WriteReport) -> None:
    """What became of the files of a project."""
    counts = [
        f"{len(paths)} {what}"
        for what in ("created", "updated", "unchanged", "removed")
        if (paths := getattr(report, what))
    ]
    say(f"{where}: {', '.join(counts) or 'nothing to write'}")
    for what in ("created", "updated", "removed"):
        for path in getattr(report, what):
            say(f"  {what}  {path}")
    for path, copy in report.saved:
        say(f"  your {path} is kept as {copy}")
    for path in report.kept:
        say(f"  {path} belongs to an earlier spec and was edited by hand, so it stays; delete it when done")


def written_json(report: WriteReport) -> dict:
    """The same for a script."""
    return {
        "created": report.created,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "kept": report.kept,
        "saved": dict(report.saved),
    }
