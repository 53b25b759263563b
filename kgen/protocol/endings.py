"""How an execution ends: nobody can go on, or every CTA exits."""

from __future__ import annotations

from kgen.protocol.agents_state import AgentState
from kgen.protocol.events import BYTES, DEADLOCK, EXITED, IN_FLIGHT, NAMED
from kgen.protocol.program import NamedBarrier, Wait
from kgen.protocol.words import barrier_name, cta_of, place_name, plural, trips_text

_PLACED = {"load": "into", "store": "of"}  # ends of asynchronous work that tell their place


def stuck(run) -> None:
    """Names the cause when nobody can go on."""
    waiting = [s for s in run.agents if s.blocked]
    keys = [s.blocked.keys[0] for s in waiting if type(s.blocked.op) is Wait]
    until = [s.preds[0] for s in waiting]
    waits = tuple(s.event() for s in waiting)
    named = next((s for s in waiting if type(s.blocked.op) is NamedBarrier), None)
    if named:
        run.fail(NAMED, run.meetings[named.blocked.keys[0]].shortfall(named),
                 "let the count be 32 x the warps that take part", *until, extra=waits)  # fmt: skip
    # A barrier to which nobody will contribute any more is the cause; what waits for one that is waited for is not.
    orphans = [k for k in keys if not _more_comes(run, k)]
    for key in orphans:
        b = run.barriers[key]
        if b.pending == 0 and b.tx:
            run.fail(BYTES, f"{b.name} never completes: {b.bytes_text()}",
                     "announce what the copies of one phase deliver, edges included", *until, key=key,
                     extra=waits)  # fmt: skip
    starved = [k for k in keys if run.barriers[k].starved]
    key = next(iter([*orphans, *starved, *keys]), None)
    run.fail(DEADLOCK, f"nothing can happen any more: {_who_waits(waiting, key)}",
             "compare what the barrier expects with who arrives", *until, key=key, extra=waits)  # fmt: skip


def _more_comes(run, key: tuple) -> bool:
    """Whether a blocked agent would still arrive at a barrier, or load for it."""
    return any(
        key in step.keys and type(step.op) is not Wait
        for s in run.agents
        for step in s.agent.steps[s.at :]
    )


def _who_waits(waiting: list[AgentState], key: tuple | None) -> str:
    """One CTA's waits; the others' are alike."""
    on_data = [s for s in waiting if type(s.blocked.op) is Wait] or waiting
    cta = key[0] if key else on_data[0].agent.cta
    mine = [s.waits_for() for s in on_data if s.agent.cta == cta]
    others = len({s.agent.cta for s in on_data} - {cta})
    alike = [f"{plural(others, 'other CTA')} wait{'s' * (others == 1)} as well"] if others else []
    return "; ".join([*mine, *alike])


def exits(run) -> None:
    """Whether a CTA may be gone while something that concerns it is in flight."""
    gone = [
        run.history.add([p for s in run.agents if s.agent.cta == c for p in s.preds], None, ("exit", c))
        for c in range(run.program.cluster)
    ]
    before = run.history.before
    for event, key, state in run.remote:
        if not before(event, gone[key[0]]):
            run.fail(EXITED, f"{cta_of(key[0])} may exit before {state.where} signals its {barrier_name(key)}",
                     "end with a cluster barrier of all CTAs", gone[key[0]], key=key)  # fmt: skip
    last_commit = {}
    for event, cta, (what, state, detail) in run.ends:
        if what == "commit" and before(event, gone[cta]):
            last_commit[state] = max(last_commit.get(state, 0), detail)
    for event, cta, (what, state, detail) in run.ends:
        if before(event, gone[cta]):
            continue
        # Commits of one thread arrive in order on the chip, so a later one that was waited for tells of it.
        if what == "commit" and detail < last_commit.get(state, 0):
            continue
        remote = cta != state.agent.cta
        place = f" {_PLACED[what]} {place_name(detail)}" if what in _PLACED else ""
        run.fail(EXITED if remote else IN_FLIGHT, f"{cta_of(cta)} may exit while a {what}{place} that {state.where} "
                 "started is in flight", "wait for it before the role ends", gone[cta])  # fmt: skip
    run.tensor.all_freed(run, gone)


def unequal_trips(states: list[AgentState]) -> str:
    """Which two agents run a loop unequally often; empty where none do."""
    seen: dict[str, tuple[int, AgentState]] = {}
    for state in states:
        for loop, count in state.agent.trips.items():
            first = seen.setdefault(loop, (count, state))
            if first[0] != count:
                a, b = first[1].where, state.where
                return f"{a} runs loop {loop} {trips_text(first[0])}, {b} {trips_text(count)}"
    return ""
