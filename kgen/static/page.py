"""docs/performance-sm100a.md, from the presets' plans: `python -m kgen.static docs/performance-sm100a.md` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from kgen.plan import make_plan
from kgen.plan.common import GemmPlan
from kgen.presets import preset, presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values
from kgen.static.k_tile import k_tile
from kgen.static.model import Estimate, bound, estimate
from kgen.static.published import COLUMNS, LADDERS, SOURCES
from kgen.static.rates import B200
from kgen.static.wrapping import wrapped

SIZES = {"4096³": (4096, 4096, 4096), "8192³": (8192, 8192, 8192), "4096×14336×4096": (4096, 14336, 4096)}
# Presets with one field changed, where the figures ask for it: (after which step, name, change).
VARIANTS = ((7, "7, stages 4", "pipeline.stages=4"), (8, "8, stages 6", "pipeline.stages=6"))
TEMPLATE = Path(__file__).with_name("page.md.j2")


def page() -> str:
    """The page as it should be."""
    plans = rungs()
    grids = {name: plan for name, plan in plans.items() if not plan.one_tile}
    at = {
        size: {name: tuple(estimate(plan, problem, B200, ns) for ns in B200.latency_ns) for name, plan in grids.items()}
        for size, problem in SIZES.items()
    }
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True)
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        rates=B200,
        fast=B200.latency_ns[0],
        slow=B200.latency_ns[1],
        k_tiles=_k_tiles(plans),
        epilogues=_epilogues(at["4096³"]),
        sizes=[(size, f"{_floor(found):,.1f}", _size(found)) for size, found in at.items()],
        beside=_beside(at),
        at=at,
        plans=plans,
        sources=SOURCES,
        ladders=LADDERS,
        span=span,
        rate_of=lambda name, tflops: _l2_rate(at["4096³"][name][0], tflops * 1e12),
    )
    return wrapped(text)


def _l2_rate(e: Estimate, flops: float) -> float:
    """Bytes per clock and SM that L2 delivers when the kernel of `e` runs at `flops`."""
    return e.traffic.l2 * flops / e.flops / B200.clock / B200.arch.sm_count


def rungs() -> dict[str, GemmPlan]:
    """The presets' plans by step, and the variants after theirs."""
    found: dict[str, GemmPlan] = {}
    for p in presets("gemm", "sm_100a"):
        found[str(p.step)] = make_plan(parse_spec(p.text).spec)
        for step, name, change in VARIANTS:
            if step == p.step:
                text = set_values(preset("gemm", step, "sm_100a").text, [change])
                found[name] = make_plan(parse_spec(text).spec)
    return found


def span(pair: tuple[Estimate, Estimate]) -> str:
    """TFLOP/s at the longer and the shorter latency."""
    low, high = sorted(round(e.rate / 1e12) for e in pair)
    return f"{low}" if low == high else f"{low}–{high}"


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _k_tiles(plans: dict[str, GemmPlan]) -> str:
    latencies = [B200.cycles(ns) for ns in B200.latency_ns]
    rows = []
    for name, plan in plans.items():
        t = k_tile(plan, B200)
        of = f"{plan.cta_tile[0]}×{plan.cta_tile[1]}" + (" of a pair's" if plan.cta_group > 1 else "")
        ring = " / ".join(f"{t.ring(latency):,.0f}" for latency in latencies)
        needed = " / ".join(f"{t.needed(latency):.1f}" for latency in latencies) if t.rounds == 1 else "–"
        held = f"{t.stages * t.written // 1024}"
        limits = list(dict.fromkeys(bound(t, latency) for latency in latencies))
        rows.append(
            (name, of, f"{t.mma:,.0f}", f"{t.read // 1024} + {t.written // 1024} → {t.smem:,.0f}", f"{t.l2:,.0f}",
             f"{t.written / t.mma:.0f}", ring, f"{t.stages} ({held})", needed, "; or ".join(limits))
        )  # fmt: skip
    header = (
        "step", "D per CTA", "MMA", "shared memory: read + written KB → cycles", "L2 port", "B/clk from L2 at peak",
        "ring", "stages (KB)", "stages needed", "limited by",
    )  # fmt: skip
    return table(header, rows)


def _epilogues(found: dict[str, tuple[Estimate, Estimate]]) -> str:
    rows = []
    for name, (e, _) in found.items():
        o = e.epilogue
        rows.append(
            (name, f"{o.tmem:,.0f}", f"{o.staging:,.0f}", f"{o.out:,.0f}", f"{o.until_free:,.0f}", f"{o.exposed:,.0f}",
             f"{o.exposed / e.tile_cycles:.1%}", o.overlap)
        )  # fmt: skip
    header = (
        "step", "read of tensor memory", "staging", "to L2", "until the accumulator is free", "exposed",
        "of a tile at K = 4096", "what runs meanwhile",
    )  # fmt: skip
    return table(header, rows)


def _floor(found: dict[str, tuple[Estimate, Estimate]]) -> float:
    return next(iter(found.values()))[0].floor * 1e6


def _size(found: dict[str, tuple[Estimate, Estimate]]) -> str:
    rows = []
    for name, pair in found.items():
        e = pair[0]
        w, t, memory = e.waves, e.traffic, B200.arch.memory_bandwidth
        share = f"{min(p.rate for p in pair) / B200.arch.peak_flops_16bit:.0%}"
        rows.append(
            (name, f"{w.tiles:,} on {w.slots}", w.waves, f"{w.last_wave:.0%}", f"{w.balance:.1%}",
             f"{t.l2 / 1e9:.2f} ({t.l2 / e.floor / 1e12:.0f})",
             f"{t.compulsory / 1e6:,.0f} to {t.per_wave / 1e6:,.0f}",
             f"{t.compulsory / memory * 1e6:,.0f} to {t.per_wave / memory * 1e6:,.0f}",
             " to ".join(dict.fromkeys(f"{p.time * 1e6:,.0f}" for p in pair)), span(pair), share)
        )  # fmt: skip
    header = (
        "step", "tiles on slots", "waves", "last wave busy", "balance", "L2 to SMs, GB (TB/s at the floor)",
        "HBM, MB", "HBM, µs", "model, µs", "model, TFLOP/s", "least share of peak",
    )  # fmt: skip
    return table(header, rows)


def _beside(at: dict[str, dict[str, tuple[Estimate, Estimate]]]) -> str:
    sizes = list(dict.fromkeys(c.size for c in COLUMNS))
    header, names = ["step"], list(at[sizes[0]])
    for size in sizes:
        header += [f"model {size}", *(f"{c.who} {size}" for c in COLUMNS if c.size == size)]
    rows = []
    for name in names:
        row = [name]
        for size in sizes:
            row += [span(at[size][name]), *(c.rungs.get(name, "–") for c in COLUMNS if c.size == size)]
        rows.append(row)
    return table(header, rows)
