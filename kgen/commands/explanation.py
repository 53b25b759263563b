"""An Explanation as tables."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kgen.explain import Explanation


def print_explanation(e: Explanation, console: Console) -> None:
    """Every section, each number with where it comes from."""
    console.print(f"[bold]{e.name}[/bold]: {e.kernel} for {e.product} ({e.arch})\n")
    for section in (_smem, _tmem, _pair, _barriers, _roles, _maps, _epilogue, _launch, _waves, _roofline):
        section(e, console)


def _table(title: str, *columns: str) -> Table:
    """A column named with a leading > is right-aligned; the last one wraps."""
    table = Table(title=f"[bold]{title}[/bold]", title_justify="left", show_edge=False, pad_edge=False)
    for i, name in enumerate(columns):
        right = name.startswith(">")
        table.add_column(name.lstrip(">"), justify="right" if right else "left", no_wrap=i < len(columns) - 1)
    return table


def _smem(e: Explanation, console: Console) -> None:
    table = _table("shared memory per CTA", ">offset", ">bytes", "name", "what")
    for r in e.smem.regions:
        table.add_row(f"{r.offset:,}", f"{r.bytes:,}", r.name, r.why)
    console.print(table)
    more = (
        f"; {e.smem.requested:,} B are asked for, so that no further CTA fits"
        if e.smem.requested > e.smem.used
        else ""
    )
    console.print(f"{e.smem.used:,} of {e.smem.limit:,} B used, {e.smem.free:,} B left{more}\n")


def _tmem(e: Explanation, console: Console) -> None:
    if (t := e.tmem) is None:
        return
    table = _table("tensor memory per CTA", ">columns", ">wide", "name", "what")
    for r in t.regions:
        table.add_row(f"{r.first}-{r.last}", str(r.columns), r.name, r.why)
    console.print(table)
    times = f" by each of {t.ctas_per_sm} CTAs" if t.ctas_per_sm > 1 else ""
    console.print(
        f"{t.used} columns used, {t.allocated} allocated{times} (by the first warp of {t.allocator}); "
        f"{t.free} of the SM's {t.limit} free\n"
    )


def _pair(e: Explanation, console: Console) -> None:
    if (p := e.pair) is None:
        return
    spans_of = (">rows of A", ">rows of B", ">rows of D", ">columns of D")
    table = _table("CTA pair", "CTA", *spans_of, ">bytes per stage", "issues MMAs")
    for c in p.ctas:
        spans = [f"{first}-{end - 1}" for first, end in (c.a_rows, c.b_rows, c.d_rows, c.d_columns)]
        table.add_row(str(c.rank), *spans, f"{c.stage_bytes:,}", "for both" if c.issues else "-")
    console.print(table)
    console.print(
        f"a tile of {p.tile[0]} x {p.tile[1]}; one MMA is {' x '.join(map(str, p.mma))} over both; "
        f"a stage of both CTAs is {p.stage_bytes:,} B"
    )
    for s in p.signals:
        sources, places = (" and ".join(map(str, ctas)) for ctas in (s.from_ctas, s.in_ctas))
        console.print(f"{s.barrier}: {s.by}, from CTA {sources} to CTA {places}, for its {s.waiter}")
    console.print()


def _barriers(e: Explanation, console: Console) -> None:
    if not e.barriers:
        console.print("no mbarriers: the threads load, and wait for each other at CTA-wide barriers\n")
        return
    table = _table(
        "barriers", "name", ">arrivals", "=", ">bytes", "=", "waited for by", ">first parity", "why"
    )
    for b in e.barriers:
        table.add_row(
            escape(f"{b.name}[{b.depth}]"),
            str(b.arrivals),
            b.arrivals_from,
            f"{b.tx_bytes:,}" if b.tx_bytes else "-",
            b.tx_from or "-",
            b.waiter,
            str(b.first_parity),
            b.why,
        )
    console.print(table)
    console.print()


def _roles(e: Explanation, console: Console) -> None:
    table = _table("warps", "warps", "role", ">threads", ">registers per thread", "does")
    for r in e.roles:
        table.add_row(r.warps, r.name, str(r.threads), str(r.registers), r.does)
    console.print(table)
    r = e.registers
    times = f", x {r.ctas_per_sm} CTAs per SM = {r.used:,}" if r.ctas_per_sm > 1 else ""
    console.print(f"registers: {r.arithmetic} = {r.per_cta:,}{times} of {r.limit:,}")
    console.print(f"accumulators lie in {r.accumulators_in}\n")


def _epilogue(e: Explanation, console: Console) -> None:
    if not e.epilogue:
        return
    table = _table("epilogue, in order", "step", "does", "arguments")
    for line in e.epilogue:
        table.add_row(line.name, escape(line.does), escape("\n".join(line.arguments)))
    console.print(table)
    console.print()


def _maps(e: Explanation, console: Console) -> None:
    if not e.tensor_maps:
        return
    table = _table("tensor maps", "name", "matrix", "row stride", ">box", ">bytes")
    for t in e.tensor_maps:
        table.add_row(t.name, escape(t.matrix), t.row_stride, t.box, f"{t.box_bytes:,}")
    console.print(table)
    console.print()


def _launch(e: Explanation, console: Console) -> None:
    launch = e.launch
    grid, cluster = (" x ".join(map(str, dims)) for dims in (launch.grid, launch.cluster))
    console.print("[bold]launch[/bold]")
    console.print(
        f"grid {grid} = {launch.ctas:,} CTAs of {launch.threads} threads, clusters of {cluster}, "
        f"{launch.smem_bytes:,} B of dynamic shared memory each\n"
    )


def _waves(e: Explanation, console: Console) -> None:
    w = e.waves
    m, n, k = w.problem
    slots = f"{w.slots:,} slots" + (f" of {w.slot_ctas} CTAs" if w.slot_ctas > 1 else "")
    console.print("[bold]waves[/bold]")
    console.print(
        f"problem {m:,} x {n:,} x {k:,} in tiles of {w.tile[0]} x {w.tile[1]}: "
        f"{w.tiles_m:,} x {w.tiles_n:,} = {w.tiles:,} tiles on {slots} = {w.waves:,} waves"
    )
    console.print(
        f"last wave {w.last_wave:.1%} busy, {w.balance:.1%} over all; "
        f"{w.useful:.1%} of what is computed lies in D\n"
    )


def _roofline(e: Explanation, console: Console) -> None:
    r = e.roofline
    console.print("[bold]roofline[/bold]")
    console.print(
        f"problem: {r.flops / 1e9:,.2f} GFLOP over {r.bytes / 1e6:,.2f} MB "
        f"= {r.problem_intensity:,.1f} FLOP/B; "
        f"the ridge of {e.arch} is at {r.ridge:,.1f}: bound by {r.bound}"
    )
    console.print(
        f"ceiling {r.ceiling / 1e12:,.1f} TFLOP/s, "
        f"and {r.ceiling_with_waves / 1e12:,.1f} with these waves and edges"
    )
    console.print(
        f"tile: {r.tile_intensity:,.1f} FLOP per byte loaded to shared memory, so the peak needs "
        f"{r.tile_bandwidth / 1e12:.2f} TB/s from L2"
    )
