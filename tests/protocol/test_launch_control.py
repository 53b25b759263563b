"""Cluster launch control: a request granted, refused at once, refused at any iteration, and an answer by multicast; and
a mistake of each."""

import random
from dataclasses import replace

import pytest
from blackwell import CLC, gemm
from mutations import edit
from test_blackwell import change, counted, is_wait, without

from kgen.protocol import events as E
from kgen.protocol.explore import check
from kgen.protocol.program import Arrive, ClcQuery, ClcRequest, Fence, Ref, When, walk
from kgen.protocol.report import report

ONE, PAIR, FOUR = gemm(clc=True), gemm(pairs=1, clc=True), gemm(pairs=2, clc=True)
PROGRAMS = {"one CTA": ONE, "pair": PAIR, "two pairs": FOUR}
AGAIN = ClcRequest(Ref("response", CLC, tag=("tile",)), "clc_full", CLC)


def is_request(op):
    return isinstance(op, ClcRequest)


def is_release(op):
    return isinstance(op, Arrive) and op.barrier == "clc_empty"


def is_armed(op):
    return isinstance(op, Arrive) and op.barrier == "clc_full"


def request_after_failure_of(tile: int):
    """The scheduler asks once more after it has read the answer of `tile`."""
    query = next(op for r in ONE.roles if r.name == "scheduler" for op in walk(r.body) if isinstance(op, ClcQuery))
    again = When(f"tile {tile}", lambda e: e["tile"] == tile, (replace(AGAIN, into=replace(AGAIN.into, ahead=1)),))
    return edit(ONE, "scheduler", query, lambda op: [op, again])


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_granted_and_refused_at_once(program):
    """Two tiles and more: requests are granted. One tile: the first is refused. None: nobody asks."""
    for tiles in ((2, 3), (1,), (0,)):
        outcome = check(program, tiles)
        assert outcome.proven, report(outcome)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_refused_at_any_iteration(program):
    """The ring of answers has two entries: both stages, both parities, and what chance brings."""
    rng = random.Random(4)
    for granted in {1, 2, 3, 4, *(rng.randrange(5, 14) for _ in range(3))}:
        outcome = check(program, (granted,))
        assert outcome.proven, report(outcome)


def test_each_cta_of_a_pair_counts_its_own_sixteen_bytes():
    for program in (PAIR, FOUR):
        (request,) = (op for r in program.roles for op in walk(r.body) if is_request(op))
        (armed,) = (op for r in program.roles for op in walk(r.body) if is_armed(op))
        assert request.into.ctas == armed.ctas == "all" and armed.expect == 16


def test_a_request_after_the_first_was_refused():
    outcome = check(request_after_failure_of(0), (1,))
    assert outcome.violation.kind == E.CLC and dict(outcome.trips)["tiles"] == 1
    assert "scheduler of CTA 0 asks for another tile after it has seen a failure" in outcome.violation.what


@pytest.mark.parametrize("tile", random.Random(9).sample(range(1, 9), 3))
def test_a_request_after_a_later_one_was_refused(tile):
    outcome = check(request_after_failure_of(tile), (tile + 1,))
    assert outcome.violation.kind == E.CLC and dict(outcome.trips)["tiles"] == tile + 1


def test_a_role_that_does_not_see_the_refusal():
    """It works on one tile more than was granted, whichever role it is, and however early the refusal comes."""
    for role in ("producer", "multiplier", "epilogue", "scheduler"):
        for granted in (1, 2, 5):
            one_more = tuple(replace(r, trips={"tiles": 1}) if r.name == role else r for r in ONE.roles)
            outcome = check(replace(ONE, roles=one_more), (granted,))
            assert outcome.violation.kind in (E.TRIPS, E.CLC), report(outcome)


@pytest.mark.parametrize("tile", random.Random(5).sample(range(8), 3))
def test_an_answer_that_is_not_given_back_once(tile):
    """At one iteration the epilogue keeps the entry; the request two later waits for it for ever."""
    release = next(op for r in ONE.roles if r.name == "epilogue" for op in walk(r.body) if is_release(op))
    once = When(f"not tile {tile}", lambda e: e["tile"] != tile, (release,))
    outcome = check(edit(ONE, "epilogue", release, lambda op: [once]), (tile + 3,))
    assert outcome.violation.kind == E.DEADLOCK and "clc_empty" in outcome.violation.what, report(outcome)


@pytest.mark.parametrize("role", ["producer", "multiplier", "epilogue", "scheduler"])
def test_an_answer_that_is_read_without_a_fence(role):
    """Each reader's own: the next answer is written by another proxy than the one before was read by."""
    outcome = check(without(PAIR, role, lambda op: isinstance(op, Fence)), (3, 4))
    assert outcome.violation.kind == E.FENCE and f"{role} of CTA" in outcome.violation.what, report(outcome)


MULTICAST = {
    "only the asking CTA is armed": (
        change(PAIR, "scheduler", is_armed, lambda op: [replace(op, ctas="self")]),
        {E.DEADLOCK, E.BYTES, E.INCOMPLETE}, "clc_full",
    ),
    "the asking CTA expects the bytes of both": (
        change(PAIR, "scheduler", is_armed, lambda op: [replace(op, ctas="self", expect=32),
                                                        replace(op, ctas=0b10, expect=0)]),
        {E.INCOMPLETE}, "response",  # the peer's phase is over before its answer has landed
    ),
    "the answer comes to one CTA": (
        change(PAIR, "scheduler", is_request, lambda op: [replace(op, into=replace(op.into, ctas="self"))]),
        {E.BYTES}, "clc_full",
    ),
    "the peer gives back its own entry": (
        change(PAIR, "epilogue", is_release, lambda op: [replace(op, ctas="self")]),
        {E.DEADLOCK, E.ARRIVALS}, "clc_empty",
    ),
    "readers of one CTA are counted": (
        counted(PAIR, "clc_empty", 6), {E.ARRIVALS, E.OVERWRITE}, "clc_empty",
    ),
    "the peer reads without having waited": (
        without(PAIR, "producer", is_wait("clc_full")), {E.INCOMPLETE, E.ALIASING}, "response",
    ),
    "the answer to a cluster that is not there": (
        change(PAIR, "scheduler", is_request, lambda op: [replace(op, into=replace(op.into, ctas=0b1111))]),
        {E.NO_CTA}, "clc_full",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MULTICAST)
def test_broken_multicasts_are_caught_by_name(what):
    program, kinds, place = MULTICAST[what]
    outcome = check(program)
    assert not outcome.proven and outcome.violation.kind in kinds, outcome.violation
    assert f"{place}[" in outcome.violation.what + outcome.violation.arithmetic, report(outcome)
