"""The barrier protocol with copies to tensor memory: proven, broken by name, and judged alike by both explorers; its
calls are those of the kernel."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from kinds import CHANGED, KINDS, plan_of, project_of

from kgen.protocol import certify, events, program_of
from kgen.protocol.explore import check
from kgen.protocol.facts import broken_facts
from kgen.protocol.order import execute
from kgen.protocol.program import AsyncCopy, AsyncLoad, AsyncMma, Commit, Loop, One, Ref, Wait, When, walk
from kgen.protocol.search import SearchLimit, search

ONE = program_of(plan_of("mxfp4"))
SHORT = program_of(plan_of("mxfp4_short"))
PAIR = program_of(plan_of("nvfp4"))
TWO = program_of(plan_of("nvfp4_two_consumers"))


@pytest.mark.parametrize("name", [*KINDS, *CHANGED])
def test_proven_and_within_the_facts(name):
    assert broken_facts(plan_of(name)) == []
    assert certify(plan_of(name)).startswith("proven")


@pytest.mark.parametrize("name", [*KINDS, *CHANGED])
def test_bytes_are_those_of_the_boxes(name):
    plan = plan_of(name)
    boxes = {m.operand: m.boxes * m.box_bytes for m in plan.tensor_maps}
    loads = [op for role in program_of(plan).roles for op in walk(role.body) if isinstance(op, AsyncLoad)]
    assert loads and all(op.bytes == boxes[op.into.buffer] for op in loads)


@pytest.mark.parametrize("name", ["mxfp8", "mxfp4", "nvfp4"])
def test_the_issuer_says_what_the_kernel_says(name):
    """Wait, copy, multiply, commit: in this order in the k loop of the template and of the program."""
    kernel = project_of(name)[f"gemm_{name}.cu"]
    loop = kernel[kernel.index("mbarrier_wait(smem.full[ring.slot]") :]
    calls = re.findall(r"(mbarrier_wait|copy_scales|multiply|tcgen05_commit)\(", loop[: loop.index("ring.advance")])
    issuer = next(r for r in program_of(plan_of(name)).roles if r.name == "mma")
    names = {Wait: "mbarrier_wait", AsyncCopy: "copy_scales", AsyncMma: "multiply", Commit: "tcgen05_commit"}
    (k_loop,) = [op for op in walk(issuer.body) if isinstance(op, Loop) and op.var == "k"]
    assert [names[type(op)] for op in k_loop.body if type(op) in names] == calls
    copied = re.findall(r"copy_scales\(scales, smem\.(\w+)\[ring.slot\][^,]*, smem\.(\w+)\[ring.slot\]\)", loop)
    (copy,) = [op for op in k_loop.body if isinstance(op, AsyncCopy)]
    assert copied == [tuple(r.buffer for r in copy.reads)]


def edited(program, role, change):
    """The program with `change` applied to each list of operations of a role."""

    def ops(body):
        return tuple(replace(op, body=ops(op.body)) if isinstance(op, Loop | When | One) else op for op in change(body))

    return replace(program, roles=tuple(replace(r, work=ops(r.work)) if r.name == role else r for r in program.roles))


def without(kind, test=lambda op: True):
    return lambda body: [op for op in body if not (isinstance(op, kind) and test(op))]


def swapped(first, second):
    """The first two neighbours of these kinds change places."""

    def change(body):
        body = list(body)
        for i, (a, b) in enumerate(pairwise(body)):
            if isinstance(a, first) and isinstance(b, second):
                body[i : i + 2] = [b, a]
                break
        return body

    return change


def on_one_place(body):
    return [
        replace(op, into=replace(op.into, buffer="scales 0"))
        if isinstance(op, AsyncCopy)
        else replace(op, reads=(*op.reads[:2], Ref("scales 0", ctas="pair")))
        if isinstance(op, AsyncMma)
        else op
        for op in body
    ]


def commit_first(body):
    """The stage is released before its scales are copied."""
    for op in body:
        if isinstance(op, AsyncCopy):
            yield Commit("empty", op.reads[0].at)
        if not (isinstance(op, Commit) and op.barrier == "empty"):
            yield op


EDITS = {
    "no copy": without(AsyncCopy),
    "the copy comes after the multiply": swapped(AsyncCopy, AsyncMma),
    "the copy does not wait": swapped(Wait, AsyncCopy),
    "the commit comes before the copy": commit_first,
}
BROKEN = {
    **{what: (edited(ONE, "mma", edit), {events.INCOMPLETE, events.OVERWRITE}) for what, edit in EDITS.items()},
    "no scales are loaded": (
        edited(ONE, "producer", without(AsyncLoad, lambda op: op.into.buffer == "sfb")),
        {events.BYTES},
    ),
    "only the first CTA copies": (
        edited(PAIR, "mma", lambda body: [replace(op, into=replace(op.into, ctas="self"))
                                          if isinstance(op, AsyncCopy) else op for op in body]),
        {events.INCOMPLETE},
    ),
    "two issuers copy to one place": (edited(TWO, "mma 1", on_one_place), {events.OVERWRITE, events.INCOMPLETE}),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_protocol_is_caught_by_name(what):
    program, kinds = BROKEN[what]
    outcome = check(program)
    assert not outcome.proven
    assert outcome.violation.kind in kinds, outcome.violation


def small(program):
    """One warp where there are four: few enough states to search one by one."""
    fewer = lambda n: max(1, n // 4) if n % 4 == 0 else n  # noqa: E731
    return replace(
        program,
        roles=tuple(replace(r, warps=fewer(r.warps)) for r in program.roles),
        barriers=tuple(replace(b, count=fewer(b.count)) for b in program.barriers),
    )


@pytest.mark.parametrize("what", ["right", *EDITS])
def test_both_explorers_say_the_same(what):
    program = small(SHORT if what == "right" else edited(SHORT, "mma", EDITS[what]))
    judged, wrong = 0, [False, False]
    for k, tiles in ((1, 1), (2, 1), (3, 1), (1, 2)):
        trips = {"k_tiles": k, "tiles": tiles}
        try:
            found = search(program, trips, limit=8_000)[1]
        except SearchLimit:
            continue
        judged += 1
        proven = execute(program, trips)[1] is None
        assert not (proven and found), (k, tiles, found)
        wrong = [wrong[0] or found is not None, wrong[1] or not proven]
    assert judged >= 2 and wrong == [what != "right"] * 2
