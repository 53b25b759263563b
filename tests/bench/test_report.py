"""Ratios, refusal of wrong results, JSON and table."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from rich.console import Console

from kgen.bench.report import (
    SCHEMA,
    STATUSES,
    BenchReport,
    Environment,
    Row,
    ShapeResult,
    timed_row,
    with_ratios,
)
from kgen.bench.spread import Spread
from kgen.bench.table import print_report
from kgen.runtime import GemmShape
from kgen.telemetry import Reading

SHAPE = GemmShape.packed(4096, 4096, 4096)


def row(label: str, kind: str, seconds: float, error: float = 1e-3) -> Row:
    return timed_row(SHAPE, label, kind, Spread.of([seconds] * 4), 2, error, 4e-3)


def report(rows: list[Row], **more) -> BenchReport:
    result = ShapeResult(
        SHAPE,
        with_ratios(rows),
        operand_sets=4,
        operand_bytes=1 << 28,
        checked_buffers=12,
        reference="cublasGemmEx in fp32",
        rounds=100,
        warmup_s=1.0,
        settled=True,
        clocks=Reading("NVML", 40, 1300.0, 1200.0, 1980.0, 690.0),
        **more,
    )
    return BenchReport("bf16", "bf16", Environment("a card", 132, 60 << 20, 13000, "13.1.0", ""), (result,))


LADDER = [
    row("step 8", "library", 250e-6),
    row("step 9", "library", 200e-6),
    row("cublasGemmEx", "cublas", 210e-6),
    row("cuBLASLt #3", "cublaslt", 190e-6),
    row("cuBLASLt #0", "cublaslt", 195e-6),
]


def test_rates_and_ratios():
    rows = {r.label: r for r in with_ratios(LADDER)}
    assert rows["step 9"].tflops == pytest.approx(2 * 4096**3 / 200e-6 / 1e12)
    assert rows["step 9"].vs_cublaslt == pytest.approx(0.95)
    assert rows["step 9"].vs_cublas == pytest.approx(1.05)
    assert rows["cuBLASLt #3"].vs_cublaslt == 1.0
    assert rows["step 9"].launches == 8


def test_a_wrong_baseline_is_no_baseline():
    rows = with_ratios([LADDER[1], row("cuBLASLt #3", "cublaslt", 1e-6, error=1.0)])
    assert rows[0].vs_cublaslt is None


@pytest.mark.parametrize("error", [4.1e-3, float("nan"), float("inf")])
def test_a_wrong_result_has_no_speed(error):
    wrong = row("step 9", "library", 1e-6, error)
    assert wrong.status == "wrong" and "relative error" in wrong.note
    speeds = (wrong.median_s, wrong.p10_s, wrong.p90_s, wrong.tflops, wrong.vs_cublas, wrong.vs_cublaslt)
    assert speeds == (None,) * 6
    made = report([wrong, *LADDER[2:]])
    assert made.exit_code == 1
    assert "wrong: relative error" in text_of(made)
    assert json.loads(made.to_json())["shapes"][0]["rows"][0]["tflops"] is None


def test_json_round_trip_and_schema():
    made = report([*LADDER, Row("step 1", "library", "refused", "invalid argument")])
    document = json.loads(made.to_json())
    assert document["schema"] == SCHEMA
    assert set(document) == {"schema", *(f.name for f in dataclasses.fields(BenchReport))}
    assert set(document["environment"]) == {f.name for f in dataclasses.fields(Environment)}
    (shape,) = document["shapes"]
    assert set(shape) == {f.name for f in dataclasses.fields(ShapeResult)}
    assert set(shape["shape"]) == {"m", "n", "k", "lda", "ldb", "ldd", "dtype_in", "dtype_out"}
    for line in shape["rows"]:
        assert set(line) == {f.name for f in dataclasses.fields(Row)}
        assert line["status"] in STATUSES
        assert (line["median_s"] is not None) == (line["status"] == "ok")
    assert BenchReport.from_json(made.to_json()) == made


def test_another_document_is_refused():
    with pytest.raises(ValueError, match=SCHEMA):
        BenchReport.from_json('{"schema": "kgen.bench/0"}')


def test_exit_codes():
    refused = Row("step 1", "library", "refused", "")
    assert report([refused, *LADDER]).exit_code == 0
    assert report([refused]).exit_code == 1, "nothing was measured"
    assert report([Row("x", "library", "failed", ""), *LADDER]).exit_code == 1
    assert report([Row("x", "library", "hung", ""), *LADDER]).exit_code == 4
    assert report(LADDER, problem="hung while timing", hung=True).exit_code == 4
    assert report(LADDER, problem="lost").exit_code == 1


def text_of(made: BenchReport) -> str:
    out = io.StringIO()
    print_report(made, Console(file=out, width=160))
    return out.getvalue()


def test_the_table_says_what_a_reader_must_know():
    text = text_of(dataclasses.replace(report(LADDER), notes=("[cuBLAS] was not found",)))
    for part in ("4096x4096x4096", "step 9", "200.0 µs", "0.950", "1.050", "SM clock 1300 MHz", "690 W"):
        assert part in text
    assert "compare ratios, not rates" in text
    assert "[cuBLAS] was not found" in text


def test_the_table_without_baselines_and_clocks():
    made = report(LADDER[:2])
    (shape,) = made.shapes
    text = text_of(dataclasses.replace(made, shapes=(dataclasses.replace(shape, clocks=None),)))
    assert "were not read" in text
