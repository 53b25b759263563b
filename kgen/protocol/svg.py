"""A failing execution as an SVG sequence diagram: the rows of the text diagram, on lifelines."""

from __future__ import annotations

from html import escape

from kgen.protocol.events import Violation
from kgen.protocol.report import diagram

COLUMN, ROW, TOP = 230, 20, 92  # pixels


def svg(name: str, violation: Violation) -> str:
    """The whole file."""
    d = diagram(violation)
    width = max(COLUMN * max(1, len(d.columns)) + 20, 700)
    height = TOP + ROW * (len(d.rows) + 1) + 70
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="ui-monospace, monospace" font-size="12" fill="#1f2328">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(name)}: {escape(violation.kind)}</text>',
    ]
    for i, line in enumerate(_folded(violation.what, width // 8)[:2]):
        out.append(f'<text x="12" y="{44 + 16 * i}">{escape(line)}</text>')
    bottom = TOP + ROW * (len(d.rows) + 1)
    for i, column in enumerate(d.columns):
        x = 12 + COLUMN * i
        out.append(f'<line x1="{x + 4}" y1="{TOP}" x2="{x + 4}" y2="{bottom}" stroke="#d0d7de"/>')
        out.append(f'<text x="{x}" y="{TOP - 8}" font-weight="bold">{escape(column)}</text>')
    for row, (column, text) in enumerate(d.rows):
        y = TOP + ROW * (row + 1)
        if column is None:
            out.append(f'<text x="12" y="{y}" fill="#656d76">{escape(text)}</text>')
            continue
        colour = "#cf222e" if text.startswith("STUCK") or row == len(d.rows) - 1 else "#0969da"
        x = 12 + COLUMN * column
        out.append(f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{x + 14}" y="{y}">{escape(text)}</text>')
    for i, line in enumerate([violation.arithmetic, violation.hint and f"change: {violation.hint}"]):
        if line:
            out.append(f'<text x="12" y="{bottom + 22 + 18 * i}">{escape(line)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _folded(text: str, columns: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(40, columns))
