"""Markdown prose in lines of one width, so that a changed number moves few lines of the page."""

from __future__ import annotations

import textwrap

WIDTH = 120
GLUE = "\x00+\x00"  # a line that began with a plus would be read as a list


def wrapped(text: str) -> str:
    """`text` with its paragraphs and list items filled; tables and headings stay as they are."""
    return "\n\n".join(_block(b) for b in text.rstrip("\n").split("\n\n")) + "\n"


def _block(block: str) -> str:
    if block.startswith(("|", "#")):
        return block
    items: list[str] = []
    for line in block.split("\n"):
        if line.startswith("- ") or not items:
            items.append(line)
        else:
            items[-1] += " " + line.strip()
    return "\n".join(_fill(item) for item in items)


def _fill(item: str) -> str:
    filled = textwrap.fill(
        item.replace(" + ", GLUE),
        WIDTH,
        subsequent_indent="  " if item.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\x00", " ")
