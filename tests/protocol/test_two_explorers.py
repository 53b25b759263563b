"""The proof by order and the search of every interleaving say the same of small protocols, right and wrong."""

import random
from dataclasses import replace

import pytest
from blackwell import answers, attention, causal, gemm
from mutations import MUTATIONS, edit

from kgen.plan import make_plan
from kgen.presets import preset
from kgen.protocol import events, program_of
from kgen.protocol.order import execute
from kgen.protocol.program import Arrive, ClcRequest, Wait, walk
from kgen.protocol.search import SearchLimit, search
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values


def of_preset(step, *changes, warps=2):
    text = set_values(preset("gemm", step, "sm_90a").text, list(changes))
    return shrunk(program_of(make_plan(parse_spec(text).spec)), warps)


def shrunk(program, warps=2):
    """With two warps where there are four: enough for one to run ahead of another, and few enough to search."""
    fewer = lambda n: n * warps // 4 if n % 4 == 0 else n  # noqa: E731
    return replace(
        program,
        roles=tuple(replace(r, warps=fewer(r.warps)) for r in program.roles if r.name != "idle"),
        barriers=tuple(replace(b, count=fewer(b.count)) for b in program.barriers),
        buffers=tuple(replace(b, parts=warps if b.parts == 4 else b.parts) for b in program.buffers),
    )


SHALLOW = "pipeline.stages=2"
SMALL = {
    "threads": (of_preset(2), [(1, 1), (2, 1), (3, 1), (1, 2)]),
    "one stage": (of_preset(4, "epilogue.store=direct"), [(1, 1), (2, 1), (3, 1), (1, 2)]),
    "ring": (of_preset(5, SHALLOW, "epilogue.store=direct"), [(1, 1), (3, 1), (4, 1), (1, 2), (3, 2)]),
    "roles": (of_preset(7, SHALLOW), [(1, 1), (2, 1), (3, 1), (5, 1), (2, 2)]),
    "two consumers": (of_preset(7, SHALLOW, "warps.consumers=2", "epilogue.store=direct"), [(1, 1), (3, 1)]),
    "cluster": (of_preset(8, SHALLOW, "epilogue.store=direct", warps=1), [(1, 1), (3, 1)]),
}
# Properties of single steps, which the search does not look at.
NOT_SEARCHED = {events.TMEM, events.CLC, events.CTA_WIDE, events.TRIPS}


def searched(program, trips) -> bool | None:
    """Whether the search finds nothing wrong; None where it would take too long."""
    try:
        return search(program, trips, limit=6_000)[1] is None
    except SearchLimit:
        return None


def same_verdict(program, bounds) -> int:
    """How many bounds both explorers judged. What the order proves, the search must not refute, at each bound; what the
    order rejects may be ambiguous before it does harm, so that the search must find something wrong at some bound."""
    judged, rejected, found = 0, False, False
    for k, tiles in bounds:
        trips = trips_of(k, tiles)
        _, violation = execute(program, trips)
        if violation and violation.kind in NOT_SEARCHED:
            return 0
        right = searched(program, trips)
        judged += right is not None
        if violation is None:
            assert right is not False, f"a false proof at {trips}: {search(program, trips)}"
        rejected |= violation is not None
        found |= right is not True
    assert found or not rejected, "a false alarm"
    return judged


def trips_of(k, tiles):
    return {"k_tiles": k, "tiles": tiles}


@pytest.mark.parametrize("name", SMALL)
def test_right_protocols_are_proven_by_both(name):
    program, bounds = SMALL[name]
    assert all(execute(program, trips_of(*b))[1] is None for b in bounds)
    assert same_verdict(program, bounds)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_mutants_get_the_same_verdict(kind):
    mutate, _ = MUTATIONS[kind]
    compared = 0
    for program, bounds in SMALL.values():
        for seed in range(2):
            mutant = mutate(program, random.Random(seed))
            if mutant is None:
                continue
            compared += same_verdict(mutant, bounds)
    assert compared or kind in ("__syncthreads in a role", "trip counts", "uneven grid")


TCGEN05 = {
    "tcgen05": gemm(stages=2, slots=1, warps=2),
    "attention": attention(warps=1),
    "causal attention": attention(warps=1, blocks=causal),
}


@pytest.mark.parametrize("program", TCGEN05.values(), ids=TCGEN05)
def test_tcgen05_protocols_are_proven_by_both(program):
    assert same_verdict(program, [(1, 1), (2, 1), (3, 1), (1, 2)]) == 4


LAUNCH_CONTROL = {
    "right": lambda p: p,
    "an arrival less": lambda p: replace(p, barriers=(p.barriers[0], replace(p.barriers[1], count=1))),
    "an arrival more": lambda p: replace(p, barriers=(p.barriers[0], replace(p.barriers[1], count=3))),
    "one CTA armed": lambda p: changed(p, Arrive, lambda op: [replace(op, ctas="self")]),
    "one CTA answered": lambda p: changed(p, ClcRequest, lambda op: [replace(op, into=replace(op.into, ctas="self"))]),
    "asked too early": lambda p: changed(p, Wait, lambda op: []),
}


def changed(program, kind, change):
    """The scheduler's first operation of a kind, changed."""
    scheduler = program.roles[0]
    return edit(program, scheduler.name, next(op for op in walk(scheduler.body) if isinstance(op, kind)), change)


@pytest.mark.parametrize("what", LAUNCH_CONTROL)
def test_answers_to_a_pair_get_the_same_verdict(what):
    """With one tile to five granted; all of them small enough to be searched."""
    bounds = [(1, tiles) for tiles in (1, 2, 3, 4, 5)]
    program = LAUNCH_CONTROL[what](answers())
    assert same_verdict(program, bounds) == len(bounds)
    assert (what == "right") == all(execute(program, trips_of(*b))[1] is None for b in bounds)


@pytest.mark.parametrize("name", SMALL)
def test_merged_warps_get_the_verdict_of_single_ones(name):
    program, bounds = SMALL[name]
    for kind, (mutate, _) in MUTATIONS.items():
        mutant = mutate(program, random.Random(7))
        for each in (program, mutant):
            if each is None:
                continue
            for k, tiles in bounds:
                merged, single = (execute(each, trips_of(k, tiles), merge=m)[1] for m in (True, False))
                assert (merged is None) == (single is None), (kind, k, tiles)
