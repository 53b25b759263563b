"""The ladder chart: well-formed, complete, the same every time."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ElementTree

import pytest

from kgen.bench.report import Row, ShapeResult
from kgen.errors import ToolchainError, UsageError
from kgen.plot import axis, ladder_svg, write_ladder

from .test_report import LADDER, SHAPE, report

SVG = "{http://www.w3.org/2000/svg}"
RESULT = report([Row("step <1>", "library", "refused", "one tile & no more"), *LADDER]).shapes[0]


def test_it_is_well_formed_and_shows_every_contestant():
    tree = ElementTree.fromstring(ladder_svg(RESULT, "A & B"))
    texts = [element.text for element in tree.iter(f"{SVG}text")]
    assert "A & B" in texts and "step <1>" in texts and "refused: one tile & no more" in texts
    for label in ("step 8", "step 9", "cublasGemmEx"):
        assert label in texts
    assert not any(text.startswith("cuBLASLt #") for text in texts)
    bars = [e for e in tree.iter(f"{SVG}rect") if e.get("class") in ("bar", "other")]
    assert len(bars) == 3


def test_bars_are_as_long_as_they_say_and_the_line_stands_at_the_best():
    tree = ElementTree.fromstring(ladder_svg(RESULT))
    bars = [float(e.get("width")) for e in tree.iter(f"{SVG}rect") if e.get("class") == "bar"]
    assert bars[1] / bars[0] == pytest.approx(250 / 200, rel=0.01)
    (line,) = [e for e in tree.iter(f"{SVG}line") if e.get("class") == "mark"]
    left = min(float(e.get("x")) for e in tree.iter(f"{SVG}rect") if e.get("class") == "bar")
    assert (float(line.get("x1")) - left) / bars[1] == pytest.approx(200 / 190, rel=0.01)


def test_everything_lies_within_the_panel():
    tree = ElementTree.fromstring(ladder_svg(RESULT))
    width, height = float(tree.get("width")), float(tree.get("height"))
    for element in tree.iter():
        if element.get("x") and element.get("y"):
            assert 0 <= float(element.get("x")) < width and 0 <= float(element.get("y")) < height


def test_the_same_result_gives_the_same_bytes():
    assert ladder_svg(RESULT) == ladder_svg(RESULT)


def test_no_baseline_no_line():
    tree = ElementTree.fromstring(ladder_svg(report(LADDER[:2]).shapes[0]))
    assert not [e for e in tree.iter(f"{SVG}line") if e.get("class") == "mark"]


def test_nothing_to_draw_is_said():
    with pytest.raises(UsageError, match="nothing to draw"):
        ladder_svg(ShapeResult(SHAPE, (Row("a", "library", "refused"),)))


@pytest.mark.parametrize(
    ("largest", "end", "step"), [(702, 800, 100), (95, 100, 20), (1.3, 1.4, 0.2), (100, 100, 20), (9, 10, 2)]
)
def test_axis_steps_are_round(largest, end, step):
    assert axis(largest) == pytest.approx((end, step))


def test_files(tmp_path):
    write_ladder(RESULT, tmp_path / "ladder.svg")
    ElementTree.parse(tmp_path / "ladder.svg")
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        write_ladder(RESULT, tmp_path / "ladder.gif")
    if importlib.util.find_spec("cairosvg") is None:
        with pytest.raises(ToolchainError, match="cairosvg"):
            write_ladder(RESULT, tmp_path / "ladder.png")
