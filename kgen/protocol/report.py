"""What a check found, for people: a sequence diagram of the shortest failing execution, the barrier's arithmetic in
words, and what to change. The same program gives the same text on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from kgen.protocol.agents_state import AgentState
from kgen.protocol.events import Event, Violation
from kgen.protocol.explore import Outcome
from kgen.protocol.program import (
    Arrive,
    AsyncCopy,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    CommitStores,
    CtaBarrier,
    ExpectTx,
    Fence,
    Init,
    NamedBarrier,
    Read,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    WaitGroup,
    WaitStores,
    Write,
)
from kgen.protocol.unroll import Step
from kgen.protocol.words import barrier_name, place_name

MAX_ROWS = 34
MAX_COLUMNS = 5
WIDTH = 30
HARDWARE = "hardware"


@dataclass(frozen=True)
class Diagram:
    """Columns by name; rows of (column, text). A row with column None says how many steps are left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | None, str], ...]


def diagram(violation: Violation) -> Diagram:
    """The violation's trace, cut to the barrier or buffer in question and what everybody does last."""
    events = [(_column(e), _says(e.what), _about(e, violation.key)) for e in violation.trace if _shown(e)]
    last: dict[str, int] = {}
    for column, _, about in events:
        last[column] = last.get(column, 0) + about
    last = {c: n for c, n in last.items() if n} or last
    cta = f"CTA {violation.key[0]} " if violation.key else ""
    order = sorted(last, key=lambda c: (c != HARDWARE, bool(cta) and not c.startswith(cta), -last[c], c))
    kept = set(order[:MAX_COLUMNS])
    columns = tuple(sorted(kept - {HARDWARE})) + ((HARDWARE,) if HARDWARE in kept else ())
    tail: dict[str, int] = {}
    wanted = []
    for column, text, about in reversed(events):
        tail[column] = tail.get(column, 0) + 1
        if column in kept and (about or tail[column] <= 4):
            wanted.append((column, text))
        else:
            wanted.append(None)
    wanted.reverse()
    extra = sum(w is not None for w in wanted) - MAX_ROWS
    rows: list[tuple[int | None, str]] = []
    skipped = 0
    for w in wanted:
        if w is not None and extra > 0 and len(rows) >= 4:
            extra -= 1
            w = None
        if w is None:
            skipped += 1
            continue
        if skipped:
            rows.append((None, f"... {skipped:,} more"))
            skipped = 0
        rows.append((columns.index(w[0]), w[1]))
    return Diagram(columns, _few_gaps(rows))


def _few_gaps(rows: list) -> tuple:
    """No more lines than MAX_ROWS and a few: gaps give way first."""
    while len(rows) > MAX_ROWS + 4:
        gap = next((i for i, (c, _) in enumerate(rows) if c is None), 0)
        rows.pop(gap)
    return tuple(rows)


def _shown(e: Event) -> bool:
    return e.what is not None


def _column(e: Event) -> str:
    if isinstance(e.agent, AgentState):
        return f"CTA {e.agent.agent.cta} {e.agent.agent.name}"
    return HARDWARE


def _about(e: Event, key: tuple | None) -> bool:
    """Whether an event touches the barrier or buffer that the violation is about."""
    what = e.what
    if key is None:
        return True
    if isinstance(what, Step):
        touched = {p[:3] for p, _ in (*what.reads, *what.writes)}
        return key in what.keys or key[:3] in touched
    if what[0] == "blocked":
        return True
    return any(part == key or (isinstance(part, tuple) and part[:3] == key[:3]) for part in what[1:])


def _tag(tag: tuple) -> str:
    return ".".join(map(str, tag))


def _says(what) -> str:
    if isinstance(what, Step):
        return _step_says(what)
    kind = what[0]
    if kind == "complete":
        return f"{barrier_name(what[1])}@{what[1][0]} phase {what[2]} done"
    if kind == "land":
        return f"{what[3]:,} B in {place_name(what[1])}@{what[1][0]}"
    if kind == "commit":
        return f"commit at {barrier_name(what[1])}@{what[1][0]}"
    if kind == "stored":
        return f"store has read {place_name(what[1])}"
    if kind == "multiplied":
        return f"done: {_step_says(what[1])}"
    if kind == "exit":
        return f"CTA {what[1]} exits"
    return f"STUCK: {_step_says(what[1])}"


def _step_says(step: Step) -> str:
    op, kind = step.op, type(step.op)
    names = " ".join(dict.fromkeys(place_name(p) for p, _ in (*step.reads, *step.writes)))
    bars = " ".join(dict.fromkeys(barrier_name(k) for k in step.keys))
    to = "" if getattr(op, "ctas", "self") == "self" else "@" + ",".join(str(k[0]) for k in step.keys)
    if kind is Wait:
        return f"wait {bars} parity {step.number}"
    if kind is Arrive:
        return f"arrive {bars}{to}" + (f" +{op.expect:,} B" if op.expect else f" x{step.number}")
    if kind is AsyncLoad or kind is ClcRequest:
        many = len({k[0] for k in step.keys}) > 1
        to = "@" + ",".join(str(p[0]) for p, _ in step.writes) if many else ""
        return f"{'load' if kind is AsyncLoad else 'ask'} {names}{to} ({_tag(step.writes[0][1])})"
    simple = {
        Init: "init barriers", ExpectTx: f"expect {bars}{to} +{step.number:,} B", AsyncMma: f"multiply {names}",
        AsyncCopy: f"copy {names}",
        Commit: f"commit {bars}{to}" + (f" x{step.number}" if step.number > 1 else ""), Read: f"read {names}",
        ClcQuery: f"query {names}", Write: f"write {names}", Fence: "proxy fence", AsyncStore: f"store {names}",
        CommitStores: "commit stores", CtaBarrier: "__syncthreads", ClusterBarrier: "cluster barrier",
        TmemRelinquish: "give up the permit",
    }  # fmt: skip
    if kind in simple:
        return simple[kind]
    if kind in (WaitGroup, WaitStores):
        return f"{'multiplies' if kind is WaitGroup else 'stores'} <= {op.pending}"
    if kind is NamedBarrier:
        return f"bar {op.id}, {op.threads}"
    if kind in (TmemAlloc, TmemDealloc):
        return f"{'alloc' if kind is TmemAlloc else 'free'} {op.columns} columns"
    return kind.__name__


def text_diagram(d: Diagram) -> list[str]:
    """The diagram in columns of text."""
    head = "  ".join(f"{c[:WIDTH]:<{WIDTH}}" for c in d.columns).rstrip()
    lines = [head, "  ".join("-" * WIDTH for _ in d.columns)]
    for column, text in d.rows:
        if column is None:
            lines.append(text)
            continue
        cells = [f"{'|':<{WIDTH}}" for _ in d.columns]
        cells[column] = f"{text:<{WIDTH}}"
        lines.append("  ".join(cells).rstrip())
    return lines


def at_text(outcome: Outcome) -> str:
    """`1 tile per CTA, 5 k tiles each`."""
    trips = dict(outcome.trips)
    tiles, ks = trips.get("tiles", 1), trips.get("k_tiles", 0)
    return f"{tiles} tile{'s' * (tiles != 1)} per CTA, {ks} k tile{'s' * (ks != 1)} each"


def report(outcome: Outcome) -> str:
    """Everything about an outcome, for a terminal."""
    if outcome.proven:
        return f"{outcome.name}: {outcome.certificate}"
    v = outcome.violation
    lines = [f"{outcome.name}: {v.kind}, at {at_text(outcome)}", f"  {v.what}"]
    if v.trace:
        lines += ["", *text_diagram(diagram(v)), ""]
    if v.arithmetic:
        lines.append(f"  barrier: {v.arithmetic}")
    if v.hint:
        lines.append(f"  change: {v.hint}")
    return "\n".join(lines)


def to_json(outcome: Outcome) -> dict:
    """The same for a script."""
    v = outcome.violation
    data = {
        "kernel": outcome.name, "proven": outcome.proven, "states": outcome.states, "cluster": outcome.cluster,
        "k_tiles": list(outcome.k_tiles), "tiles_per_cta": list(outcome.tiles),
        "certificate": outcome.certificate if outcome.proven else None,
    }  # fmt: skip
    if v:
        d = diagram(v)
        data["violation"] = {
            "kind": v.kind, "what": v.what, "change": v.hint, "barrier": v.arithmetic, "at": dict(outcome.trips),
            "columns": list(d.columns), "trace": [[d.columns[c] if c is not None else "", t] for c, t in d.rows],
        }  # fmt: skip
    return data
