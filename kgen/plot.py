"""A ladder as a bar chart: one bar of TFLOP/s per contestant, and a line where cuBLASLt's best stands.

The SVG brings its own panel and follows the reader's colour scheme, so it is readable on light pages and dark
ones. The same result gives the same bytes.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from kgen.bench.report import Row, ShapeResult
from kgen.errors import ToolchainError, UsageError

_WIDTH, _PAD, _TOP = 760, 20, 76
_BAR, _GAP, _VALUE_SPACE = 20, 10, 130
_CHARACTER = 8.2  # rough width of one in the label font


def ladder_svg(result: ShapeResult, title: str = "") -> str:
    """The chart of one shape's result. Contestants without a speed keep their place, with the reason.

    Raises `UsageError` where there is nothing to draw.
    """
    rows = [row for row in result.rows if row.kind != "cublaslt"]
    best = result.best("cublaslt")
    rates = [row.tflops for row in [*rows, best] if row is not None and row.tflops is not None]
    if not rates:
        raise UsageError(f"{result.shape.name}: no contestant has a speed, so there is nothing to draw")
    top_rate, step = axis(max(rates))
    left = _PAD + max(60, math.ceil(_CHARACTER * max(len(row.label) for row in rows))) + 8
    right = _WIDTH - _PAD - _VALUE_SPACE

    def x(rate: float) -> float:
        return round(left + (right - left) * rate / top_rate, 1)

    bottom = _TOP + len(rows) * (_BAR + _GAP) + _GAP
    return _template().render(
        width=_WIDTH,
        height=bottom + 34,
        pad=_PAD,
        left=left,
        rate_x=right + 60,
        ratio_x=right + _VALUE_SPACE,
        top=_TOP,
        bottom=bottom,
        title=title or f"GEMM {result.shape.name}",
        subtitle=_subtitle(result),
        ticks=[{"x": x(i * step), "text": f"{i * step:g}"} for i in range(round(top_rate / step) + 1)],
        bars=[_bar(row, index, left, x) for index, row in enumerate(rows)],
        mark=None if best is None else {"x": x(best.tflops), "text": f"cuBLASLt's best: {best.tflops:.0f}"},
    )


def axis(largest: float) -> tuple[float, float]:
    """(end, step) of an axis from 0 that holds `largest` with 4 to 8 round steps."""
    power = 10.0 ** math.floor(math.log10(largest))
    for factor in (0.2, 0.25, 0.5, 1.0, 2.0):
        step = factor * power
        count = math.ceil(round(largest / step, 9))
        if count <= 8:
            return max(count, 1) * step, step
    raise AssertionError("8 steps of twice the leading power of ten hold any number")


def _bar(row: Row, index: int, left: float, x: Callable[[float], float]) -> dict[str, object]:
    y = _TOP + _GAP + index * (_BAR + _GAP)
    shared = {"label": row.label, "y": y, "height": _BAR, "text_y": y + 15}
    if row.tflops is None:
        reason = f"{row.status}: {row.note}" if row.note else row.status
        reason = reason if len(reason) <= 60 else reason[:59] + "…"
        back = round(_CHARACTER * len(reason)) + 8  # keeps the grid from running through the words
        return {**shared, "width": 0, "back": back, "reason": reason}
    return {
        **shared,
        "width": round(x(row.tflops) - left, 1),
        "style": "bar" if row.kind == "library" else "other",
        "reason": "",
        "rate": f"{row.tflops:.0f}" if row.tflops >= 10 else f"{row.tflops:.2g}",
        "ratio": "" if row.vs_cublaslt is None else f"{row.vs_cublaslt:.2f}×",
    }


def _subtitle(result: ShapeResult) -> str:
    shape = result.shape
    clock = f", SM clock {result.clocks.sm_mhz_median:.0f} MHz" if result.clocks else ""
    return f"m x n x k = {shape.name}, {shape.dtype_in} in, {shape.dtype_out} out{clock}"


def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("ladder.svg.j2")


def write_ladder(result: ShapeResult, path: str | Path, title: str = "") -> None:
    """Write the chart as .svg, or as .png where the package cairosvg is installed.

    Raises `ToolchainError` for a .png without it, `UsageError` for another suffix.
    """
    path = Path(path)
    svg = ladder_svg(result, title)
    if path.suffix == ".svg":
        path.write_text(svg, encoding="utf-8")
    elif path.suffix == ".png":
        if importlib.util.find_spec("cairosvg") is None:
            raise ToolchainError(
                f"{path}: drawing a PNG needs the package cairosvg (pip install cairosvg); .svg needs nothing"
            )
        import cairosvg

        cairosvg.svg2png(bytestring=svg.encode(), write_to=str(path), scale=2)
    else:
        raise UsageError(f"{path}: a chart is written as .svg or .png")
