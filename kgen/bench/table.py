"""A report as tables for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from kgen.bench.report import BenchReport, Row, ShapeResult

LOW_CLOCK_MHZ = 1400  # below this the card is throttled by power so far that only ratios mean something


def print_report(report: BenchReport, console: Console | None = None) -> None:
    """Everything a reader needs to judge the numbers, the numbers, and what is missing and why."""
    console = console or Console()
    if report.environment is not None:
        env = report.environment
        console.print(
            f"{env.card}, {env.sm_count} SMs, {env.l2_bytes / 2**20:.0f} MiB L2, "
            f"driver for CUDA {env.driver_version // 1000}.{env.driver_version // 10 % 100}, "
            f"cuBLAS {env.cublas_version or 'absent'}; {report.dtype_in} in, {report.dtype_out} out, "
            "fp32 accumulation",
            highlight=False,
        )
    for shape in report.shapes:
        console.print(_table(shape))
        for line in _remarks(shape):
            console.print(f"  {line}", highlight=False, markup=False)
    for note in report.notes:
        console.print(f"note: {note}", highlight=False, markup=False)


def _table(result: ShapeResult) -> Table:
    table = Table(title=result.shape.name, title_justify="left")
    table.add_column("")
    for heading in ("median", "p10", "p90", "TFLOP/s", "vs cuBLASLt", "vs cublasGemmEx", "rel. error"):
        table.add_column(heading, justify="right")
    table.add_column("note")
    for row in result.rows:
        table.add_row(*_cells(row), style=None if row.status == "ok" else "yellow")
    return table


def _cells(row: Row) -> list[str]:
    note = row.note if row.status == "ok" else f"{row.status}: {row.note}" if row.note else row.status
    return [
        row.label,
        _time(row.median_s),
        _time(row.p10_s),
        _time(row.p90_s),
        "" if row.tflops is None else f"{row.tflops:.1f}",
        "" if row.vs_cublaslt is None else f"{row.vs_cublaslt:.3f}",
        "" if row.vs_cublas is None else f"{row.vs_cublas:.3f}",
        "" if row.error is None else f"{row.error:.1e}",
        note,
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3f} ms"


def _remarks(result: ShapeResult) -> list[str]:
    if result.problem:
        return [f"not measured: {result.problem}"]
    lines = [
        f"{result.rounds} interleaved rounds over {result.operand_sets} operand sets "
        f"({result.operand_bytes / 2**20:.0f} MiB); {result.checked_buffers} timed results checked "
        f"against {result.reference}"
    ]
    if result.clocks is not None:
        clocks = result.clocks
        watts = "" if clocks.power_w_median is None else f", {clocks.power_w_median:.0f} W"
        lines.append(
            f"SM clock {clocks.sm_mhz_median:.0f} MHz ({clocks.sm_mhz_min:.0f} to {clocks.sm_mhz_max:.0f})"
            f"{watts}, by {clocks.source}"
        )
        if clocks.sm_mhz_median < LOW_CLOCK_MHZ:
            lines.append("the card is limited by power: compare ratios, not rates")
    else:
        lines.append("SM clock and power were not read")
    if result.settled is False:
        lines.append(f"the clocks had not settled after {result.warmup_s:.1f} s of warm-up")
    drifts = [row.drift for row in result.rows if row.drift is not None]
    if drifts:
        lines.append(f"drift within the run at most {max(drifts):.1%}: smaller differences are noise")
    return lines
