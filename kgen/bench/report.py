"""What a benchmark run found: records, JSON, and a table.

The JSON is the records below, field for field (`BenchReport` is the top object), plus
`"schema": "kgen.bench/1"`. A number that a run could not find is null. Times are seconds per launch, rates
TFLOP/s (10^12), sizes bytes, clocks MHz, power W. A row has times only with status `ok`.

Statuses: `ok`; `wrong` (the result differs too much from the reference: no speed is given); `refused` (the
launcher returned an error, as it must on a shape it cannot take); `failed` (the device reported an error);
`hung` (killed by the watchdog).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgen.bench.spread import Spread
from kgen.runtime import GemmShape
from kgen.telemetry import Reading

SCHEMA = "kgen.bench/1"
STATUSES = ("ok", "wrong", "refused", "failed", "hung")
KINDS = ("library", "cublas", "cublaslt")


@dataclass(frozen=True)
class Row:
    """One contestant on one shape. `vs_*` is that baseline's median time over this one's: above 1 is faster.

    `error` is ||d - reference|| / ||reference|| (Frobenius) over the buffers that were timed, the worst of
    them; `error_limit` is what it may be. `launches` counts all timed launches, `batch` to an event pair.
    """

    label: str
    kind: str
    status: str
    note: str = ""
    median_s: float | None = None
    p10_s: float | None = None
    p90_s: float | None = None
    drift: float | None = None
    tflops: float | None = None
    vs_cublaslt: float | None = None
    vs_cublas: float | None = None
    launches: int = 0
    batch: int = 1
    error: float | None = None
    error_limit: float | None = None


@dataclass(frozen=True)
class ShapeResult:
    """All contestants on one shape, from one interleaved run. `problem` says why where none came about, and
    `hung` that the watchdog ended it."""

    shape: GemmShape
    rows: tuple[Row, ...]
    problem: str = ""
    hung: bool = False
    operand_sets: int = 0
    operand_bytes: int = 0  # of all sets together, to compare with the L2
    checked_buffers: int = 0
    reference: str = ""
    rounds: int = 0
    warmup_s: float | None = None
    settled: bool | None = None
    clocks: Reading | None = None

    def best(self, kind: str) -> Row | None:
        """The fastest right row of a kind."""
        rows = [row for row in self.rows if row.kind == kind and row.median_s is not None]
        return min(rows, key=lambda row: row.median_s or 0.0, default=None)


@dataclass(frozen=True)
class Environment:
    """The machine the numbers belong to."""

    card: str
    sm_count: int
    l2_bytes: int
    driver_version: int
    cublas_version: str | None
    cublas_note: str


@dataclass(frozen=True)
class BenchReport:
    """A whole run. `environment` is None where it never came to open the card."""

    dtype_in: str
    dtype_out: str
    environment: Environment | None
    shapes: tuple[ShapeResult, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def exit_code(self) -> int:
        """0: all libraries were right on the shapes they accepted, and at least one was timed; 4: something
        hung; 1: anything else."""
        ours = [row for shape in self.shapes for row in shape.rows if row.kind == "library"]
        if any(row.status == "hung" for row in ours) or any(shape.hung for shape in self.shapes):
            return 4
        bad = any(row.status in ("wrong", "failed") for row in ours)
        lost = any(shape.problem for shape in self.shapes)
        timed = any(row.status == "ok" for row in ours)
        return 1 if bad or lost or not timed else 0

    def to_json(self) -> str:
        """The document described in this module's docstring."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BenchReport:
        """Read it back; raises ValueError for another schema."""
        document = json.loads(text)
        if document.pop("schema", None) != SCHEMA:
            raise ValueError(f"not a {SCHEMA} document")
        environment = document.pop("environment")
        return cls(
            dtype_in=document["dtype_in"],
            dtype_out=document["dtype_out"],
            environment=Environment(**environment) if environment else None,
            shapes=tuple(shape_from_dict(shape) for shape in document["shapes"]),
            notes=tuple(document["notes"]),
        )

    def write_json(self, path: str | Path) -> None:
        """Write the document to a file."""
        Path(path).write_text(self.to_json())


def shape_from_dict(document: dict[str, Any]) -> ShapeResult:
    """A `ShapeResult` from its JSON object."""
    parts = dict(document)
    clocks = parts.pop("clocks")
    return ShapeResult(
        shape=GemmShape(**parts.pop("shape")),
        rows=tuple(Row(**row) for row in parts.pop("rows")),
        clocks=Reading(**clocks) if clocks else None,
        **parts,
    )


def wrong_row(label: str, kind: str, error: float, error_limit: float) -> Row:
    """A row without a speed, because the result is not right."""
    what = f"relative error {error:.3g}, at most {error_limit:.3g} is right"
    # JSON has neither NaN nor infinity: the note tells such an error.
    return Row(
        label, kind, "wrong", what, error=error if math.isfinite(error) else None, error_limit=error_limit
    )


def timed_row(
    shape: GemmShape,
    label: str,
    kind: str,
    spread: Spread,
    batch: int,
    error: float,
    error_limit: float,
    note: str = "",
) -> Row:
    """A row with its speed, or without one where the result is wrong (a NaN error is wrong)."""
    if not error <= error_limit:
        return wrong_row(label, kind, error, error_limit)
    return Row(
        label,
        kind,
        "ok",
        note,
        median_s=spread.median_s,
        p10_s=spread.p10_s,
        p90_s=spread.p90_s,
        drift=spread.drift,
        tflops=shape.flops / spread.median_s / 1e12,
        launches=spread.samples * batch,
        batch=batch,
        error=error,
        error_limit=error_limit,
    )


def with_ratios(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The same rows with `vs_cublas` and `vs_cublaslt` filled, where that baseline was right."""
    rows = tuple(rows)

    def fastest(kind: str) -> float | None:
        return min((r.median_s for r in rows if r.kind == kind and r.median_s is not None), default=None)

    cublas, lt = fastest("cublas"), fastest("cublaslt")
    return tuple(
        row
        if row.median_s is None
        else dataclasses.replace(
            row,
            vs_cublas=None if cublas is None else cublas / row.median_s,
            vs_cublaslt=None if lt is None else lt / row.median_s,
        )
        for row in rows
    )
