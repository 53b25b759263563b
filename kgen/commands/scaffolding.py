"""`kgen new` and `kgen list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgen.commands.terminal import say, say_json
from kgen.errors import UsageError


def register(app: typer.Typer) -> None:
    app.command("new")(new)
    app.command("list")(list_presets)


def _families(incomplete: str) -> list[str]:
    from kgen.presets import presets

    return sorted({p.family for p in presets() if p.family.startswith(incomplete)})


def _steps(incomplete: str) -> list[tuple[str, str]]:
    from kgen.presets import presets

    return [(p.name, p.adds) for p in presets() if p.name.startswith(incomplete)]


def _words(incomplete: str) -> list[tuple[str, str]]:
    from kgen.presets import named_presets

    return [(p.name, p.adds) for p in named_presets() if p.name.startswith(incomplete)]


def _fields(incomplete: str) -> list[str]:
    from kgen.spec.families import variants
    from kgen.spec.fields import field_paths

    names = dict.fromkeys(f"{path}=" for variant in variants() for path in field_paths(variant.model))
    return [name for name in names if name.startswith(incomplete)]


def _archs(incomplete: str) -> list[str]:
    from kgen.arch import ARCHS

    return [a for a in ARCHS if a.startswith(incomplete)]


def new(
    family: Annotated[
        str | None, typer.Argument(help="Kernel family, as in `kgen list`.", autocompletion=_families)
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", "-s", help="Which step of the family's ladder.", autocompletion=_steps)
    ] = None,
    word: Annotated[
        str | None, typer.Option("--preset", help="Or which named preset of the family.", autocompletion=_words)
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(
            help="GPU architecture; default: that of the card in this machine.", autocompletion=_archs
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Project directory; default: ./<name>.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Change a field of the spec.", autocompletion=_fields
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Names files, symbols and namespace.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Show the presets and stop.")] = False,
) -> None:
    """Scaffold a project from a preset: spec, kernel, check, build files and test."""
    if show_list:
        return list_presets(as_json=False)
    if family is None or (step is None) == (word is None):
        raise UsageError(
            "say what to scaffold, as in `kgen new gemm --step 9`; `kgen list` shows what there is, by step or by name"
        )
    from kgen.commands.sources import source_of_text
    from kgen.commands.terminal import say_written
    from kgen.presets import preset
    from kgen.project import SPEC, require_fresh, write_project
    from kgen.spec.edit import set_values

    which = word if step is None else step
    arch, reason = (arch, "") if arch else _choose_arch(family, which)
    found = preset(family, which, arch)
    changes = [*(assignments or []), *([f"name={name}"] if name else [])]
    text = set_values(found.text, changes, found.reference) if changes else found.text
    label = f"{found.reference} as set" if changes else found.reference
    made = source_of_text(text, label)
    directory = output or Path(made.plan.name)
    require_fresh(directory)
    report = write_project(made.files(), directory)
    say(f"{family} {found.label} for {found.arch}{reason}: {found.adds}")
    say_written(directory, report)
    say(f"next: cd {directory}; edit {SPEC}, then `kgen render`; `kgen explain`, `build`, `test`, `bench`")


def _choose_arch(family: str, which: int | str) -> tuple[str | None, str]:
    """The architecture to write for, and why, in words that follow it."""
    from kgen.arch import ARCHS
    from kgen.presets import preset

    name, arch = _card_here()
    if arch:
        return arch, f" (the card here is {name})"
    newest = preset(family, which).arch
    if name:
        return (
            newest,
            f" (the card here, {name}, runs none of {', '.join(ARCHS)}; this is the newest with the preset)",
        )
    return newest, " (no card here; this is the newest architecture with the preset)"


def _card_here() -> tuple[str, str | None]:
    """Name and architecture of the first card; the driver is only asked where the cheap signs do not tell."""
    from kgen.device import card, card_named_by_kernel_module, may_have_card

    if not may_have_card():
        return "", None
    named = card_named_by_kernel_module()
    if named:
        return named[0], named[1].name
    found = card()
    return (found.name, found.arch.name if found.arch else None) if found else ("", None)


def list_presets(as_json: Annotated[bool, typer.Option("--json", help="For a script.")] = False) -> None:
    """Show families, presets and what each adds to the one it builds on."""
    from kgen.presets import all_presets, base_of
    from kgen.spec.difference import differences
    from kgen.spec.families import FAMILIES

    found = all_presets()
    rows = [(p, base_of(p)) for p in found]
    rows = [(p, base, differences(base.text, p.text) if base else []) for p, base in rows]
    if as_json:
        say_json(
            [
                {
                    "family": p.family,
                    "arch": p.arch,
                    "step": p.step,
                    "name": p.name,
                    "builds_on": base.reference if base else None,
                    "title": p.title,
                    "adds": p.adds,
                    "changes": [c.to_json() for c in changes],
                    "new": f"kgen new {p.family} {p.option} --arch {p.arch}",
                }
                for p, base, changes in rows
            ]
        )
        return
    from rich.markup import escape
    from rich.table import Table

    from kgen.commands.terminal import console

    for family, arch in dict.fromkeys((p.family, p.arch) for p in found):
        title = escape(f"{family} on {arch}: {FAMILIES[family].summary}")
        table = Table(title=title, title_justify="left", show_edge=False)
        table.add_column("step or name", no_wrap=True)
        table.add_column("adds", no_wrap=True)
        table.add_column("changes in the spec", overflow="fold")
        for p, base, changes in rows:
            if (p.family, p.arch) == (family, arch):
                to = f"to {base.label}: " if base and p.step is None else ""
                table.add_row(p.name, p.adds, escape(to + ", ".join(map(str, changes))))
        console().print(table)
    say("\nkgen new gemm --step 9 scaffolds one; kgen diff 8 9 shows what a step changes")
