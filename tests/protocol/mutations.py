"""Ways to break a protocol: each takes a program and a random generator, and returns one that is wrong, or None where
the program has nothing of the kind. All but the plan's own counts are changes of one operation of one role, as a slip
of the pen would be."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from kgen.protocol import events as E
from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncLoad,
    AsyncMma,
    AsyncStore,
    At,
    ClusterBarrier,
    Commit,
    CtaBarrier,
    Fence,
    Loop,
    One,
    Program,
    Wait,
    WaitGroup,
    WaitStores,
    When,
    Write,
    walk,
)


def edit(program: Program, role: str, wanted, change) -> Program:
    """The program with `change` (operation -> operations) applied to the operation `wanted` (by identity) of a role."""

    def ops(body):
        out = []
        for op in body:
            if op is wanted:
                out += change(op)
            elif isinstance(op, Loop | When | One):
                out.append(replace(op, body=ops(op.body)))
            else:
                out.append(op)
        return tuple(out)

    roles = [
        replace(r, before=ops(r.before), work=ops(r.work), after=ops(r.after)) if r.name == role else r
        for r in program.roles
    ]
    return replace(program, roles=tuple(roles))


def pick(program: Program, rng: random.Random, test):
    """(role, operation) of one that passes the test, or None."""
    found = [(r.name, op) for r in program.roles for op in walk(r.body) if test(op)]
    return rng.choice(found) if found else None


def _one(test, change):
    def mutate(program, rng):
        found = pick(program, rng, test)
        return found and edit(program, *found, lambda op: change(op, rng, program))

    return mutate


def _count(delta):
    def mutate(program, rng):
        if not program.barriers:
            return None
        wrong = rng.choice(program.barriers)
        changed = tuple(replace(b, count=b.count + delta) if b is wrong else b for b in program.barriers)
        return replace(program, barriers=changed)

    return mutate


def _depth(program, rng):
    """One role walks a ring with one stage more or less than the others."""
    roles = [
        r for r in program.roles if any(isinstance(op, Wait) and op.at and op.at.ring == "ring" for op in walk(r.body))
    ]
    depth = next((r.depth for r in program.rings if r.name == "ring"), 0)
    if not roles or depth < 2:
        return None
    wrong = rng.choice(roles)
    delta = rng.choice([-1, 1])
    return replace(program, roles=tuple(replace(r, depths={"ring": delta}) if r is wrong else r for r in program.roles))


def _trips(program, rng):
    if len(program.roles) < 2:
        return None
    wrong = rng.choice([r for r in program.roles if r.work])
    counts = {op.count for op in walk(wrong.body) if isinstance(op, Loop)}  # an epilogue knows no k tiles
    delta = {rng.choice([c for c in ("k_tiles", "tiles") if c in counts]): 1}
    return replace(program, roles=tuple(replace(r, trips=delta) if r is wrong else r for r in program.roles))


def _swap(program, rng):
    """Two neighbours of one body in the wrong order, of those whose order matters to another agent or unit."""
    order = [
        (Wait, Arrive), (Wait, AsyncMma), (Wait, AsyncLoad), (AsyncMma, WaitGroup), (Write, Fence), (Fence, AsyncStore),
        (WaitGroup, CtaBarrier), (Fence, CtaBarrier), (WaitStores, Write), (WaitGroup, Arrive), (CtaBarrier, AsyncMma),
    ]  # fmt: skip
    found = []
    for role in program.roles:
        for body in _bodies(role.body):
            for a, b in pairwise(body):
                if (type(a), type(b)) in order and (getattr(a, "pending", 0) == 0 or isinstance(a, WaitStores)):
                    found.append((role.name, a, b))
    if not found:
        return None
    role, a, b = rng.choice(found)
    return edit(edit(program, role, b, lambda op: []), role, a, lambda op: [b, op])


def _bodies(ops):
    yield ops
    for op in ops:
        if isinstance(op, Loop | When | One):
            yield from _bodies(op.body)


def _mask(op, rng, program):
    """A multicast without one of its CTAs (or, of a release, without one of its receivers)."""
    short = ((1 << program.cluster) - 1) & ~(1 << rng.randrange(program.cluster))
    if isinstance(op, AsyncLoad):
        return [replace(op, into=replace(op.into, ctas=short))]
    return [replace(op, ctas=short)]


def _is_all(op) -> bool:
    return getattr(op, "ctas", None) == "all" or (isinstance(op, AsyncLoad) and op.into.ctas == "all")


# name: (mutation, the properties whose violation may be reported for it)
MUTATIONS = {
    "count + 1": (_count(1), {E.DEADLOCK}),
    "count - 1": (_count(-1), {E.ARRIVALS, E.OVERWRITE, E.INCOMPLETE, E.ALIASING}),
    "missing arrival": (
        _one(lambda op: isinstance(op, Arrive | Commit), lambda op, rng, p: []),
        {E.DEADLOCK, E.BYTES, E.INCOMPLETE, E.ALIASING},
    ),
    "first parity": (
        _one(lambda op: isinstance(op, Wait), lambda op, rng, p: [replace(op, flip=1 - op.flip)]),
        {E.DEADLOCK, E.INCOMPLETE, E.ALIASING, E.OVERWRITE},
    ),
    "bytes + 16": (
        _one(lambda op: getattr(op, "expect", 0) > 0, lambda op, rng, p: [replace(op, expect=op.expect + 16)]),
        {E.BYTES},
    ),
    "bytes - 16": (
        _one(lambda op: getattr(op, "expect", 0) > 0, lambda op, rng, p: [replace(op, expect=op.expect - 16)]),
        {E.BYTES},
    ),
    "ring depth": (_depth, {E.RANGE, E.DEADLOCK, E.INCOMPLETE, E.ALIASING, E.OVERWRITE, E.ARRIVALS, E.BYTES}),
    "trip counts": (_trips, {E.TRIPS}),
    "mask": (_one(_is_all, _mask), {E.BYTES, E.DEADLOCK, E.OVERWRITE, E.INCOMPLETE, E.ALIASING}),
    "order": (
        _swap,
        {E.OVERWRITE, E.INCOMPLETE, E.ALIASING, E.ARRIVALS, E.BYTES, E.DEADLOCK, E.FENCE, E.IN_FLIGHT},
    ),
    "early release": (
        _one(
            lambda op: isinstance(op, Arrive) and op.at == At("ring", -1),
            lambda op, rng, p: [replace(op, at=At("ring"))],
        ),
        {E.OVERWRITE, E.ALIASING, E.ARRIVALS, E.DEADLOCK},
    ),
    "wgmma wait dropped": (
        _one(lambda op: isinstance(op, WaitGroup), lambda op, rng, p: []),
        {E.OVERWRITE, E.INCOMPLETE},
    ),
    "cluster sync dropped": (
        _one(lambda op: isinstance(op, ClusterBarrier), lambda op, rng, p: []),
        {E.DEADLOCK, E.EARLY, E.EXITED, E.INCOMPLETE, E.LAUNCHED},
    ),
    "all cluster syncs dropped": (
        lambda p, rng: replace(p, roles=tuple(replace(r, after=()) for r in p.roles)) if p.cluster > 1 else None,
        {E.EXITED, E.TMEM},
    ),
    "advance dropped": (
        _one(lambda op: isinstance(op, Advance) and op.ring == "ring", lambda op, rng, p: []),
        {E.DEADLOCK, E.INCOMPLETE, E.ALIASING, E.OVERWRITE, E.ARRIVALS, E.BYTES},
    ),
    "proxy fence dropped": (_one(lambda op: isinstance(op, Fence), lambda op, rng, p: []), {E.FENCE}),
    "store wait dropped": (
        _one(lambda op: isinstance(op, WaitStores), lambda op, rng, p: []),
        {E.OVERWRITE, E.IN_FLIGHT},
    ),
    "__syncthreads dropped": (
        _one(lambda op: isinstance(op, CtaBarrier), lambda op, rng, p: []),
        {E.OVERWRITE, E.INCOMPLETE, E.EARLY, E.FENCE, E.DEADLOCK},
    ),
    "__syncthreads in a role": (
        lambda p, rng: edit(p, p.roles[0].name, next(iter(p.roles[0].work)), lambda op: [CtaBarrier(), op])
        if len(p.roles) > 1
        else None,
        {E.CTA_WIDE},
    ),
    "uneven grid": (
        lambda p, rng: replace(p, uneven={(rng.randrange(p.cluster), "tiles"): -1}) if p.cluster > 1 else None,
        {E.TRIPS},
    ),
}  # fmt: skip
