"""Hand-written tcgen05 protocols: right ones proven, broken ones caught by name."""

from dataclasses import replace

import pytest
from blackwell import attention, causal, every_block, gemm, second_rows_masked
from mutations import edit

from kgen.protocol import events as E
from kgen.protocol.explore import check
from kgen.protocol.program import (
    Arrive,
    AsyncLoad,
    AsyncMma,
    At,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    Loop,
    NamedBarrier,
    Read,
    Ref,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    walk,
)

RIGHT = {
    "one CTA": gemm(),
    "one accumulator": gemm(slots=1),
    "launch control": gemm(clc=True),
    "pair": gemm(pairs=1),
    "two pairs in a cluster of four": gemm(pairs=2),
    "attention": attention(),
    "deep": gemm(stages=7),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_protocols_are_proven(name):
    outcome = check(RIGHT[name])
    assert outcome.proven, outcome.violation
    assert outcome.states > 400 and outcome.tiles[:4] == (0, 1, 2, 3)


def change(program, role, test, to):
    """The program with the first operation of a role that passes the test changed."""
    ops = next(r for r in program.roles if r.name == role).body
    return edit(program, role, next(op for op in walk(ops) if test(op)), to)


def is_commit(barrier):
    return lambda op: isinstance(op, Commit) and op.barrier == barrier


def is_wait(barrier):
    return lambda op: isinstance(op, Wait) and op.barrier == barrier


def without(program, role, test):
    return change(program, role, test, lambda op: [])


def counted(program, name, count):
    return replace(
        program, barriers=tuple(replace(b, count=count) if b.name == name else b for b in program.barriers)
    )


def of_kind(kind):
    return lambda op: isinstance(op, kind)


def swapped(program, role, first, second):
    """Two neighbouring operations the other way round."""
    ops = list(walk(next(r for r in program.roles if r.name == role).body))
    a, b = next(op for op in ops if first(op)), next(op for op in ops if second(op))
    return edit(edit(program, role, b, lambda op: []), role, a, lambda op: [b, op])


PAIR, ONE, CLC = gemm(pairs=1), gemm(), gemm(clc=True)

BROKEN = {
    "no commit to the ring": (without(ONE, "multiplier", is_commit("empty")), {E.DEADLOCK}),
    "no commit of the accumulator": (without(ONE, "multiplier", is_commit("acc_full")), {E.DEADLOCK}),
    "a commit before the multiply": (
        swapped(ONE, "multiplier", of_kind(AsyncMma), is_commit("empty")), {E.OVERWRITE},
    ),
    "the accumulator is not waited for": (without(ONE, "epilogue", is_wait("acc_full")), {E.INCOMPLETE, E.ALIASING}),
    "the slot is not waited for": (without(ONE, "multiplier", is_wait("acc_empty")), {E.OVERWRITE, E.ARRIVALS}),
    "the operands are not waited for": (without(ONE, "multiplier", is_wait("full")), {E.INCOMPLETE}),
    "the first slot is waited for": (
        change(ONE, "multiplier", is_wait("acc_empty"), lambda op: [replace(op, flip=0)]), {E.DEADLOCK},
    ),
    "the accumulator is not cleared": (
        change(ONE, "multiplier", of_kind(AsyncMma), lambda op: [replace(op, fresh=None)]), {E.INCOMPLETE},
    ),
    "one warp of the epilogue does not count": (counted(ONE, "acc_empty", 3), {E.ARRIVALS, E.OVERWRITE}),
    "commits go to one CTA of the pair": (
        change(PAIR, "multiplier", is_commit("empty"), lambda op: [replace(op, ctas="self")]), {E.DEADLOCK},
    ),
    "the accumulator's commit goes to one CTA": (
        change(PAIR, "multiplier", is_commit("acc_full"), lambda op: [replace(op, ctas="self")]), {E.DEADLOCK},
    ),
    "loads signal their own CTA": (
        change(PAIR, "producer", of_kind(AsyncLoad), lambda op: [replace(op, signal="each")]), {E.BYTES, E.DEADLOCK},
    ),
    "the leader's barrier counts one producer": (counted(PAIR, "full", 1), {E.ARRIVALS, E.BYTES, E.INCOMPLETE}),
    "the peer's epilogue releases its own slot": (
        change(PAIR, "epilogue", of_kind(Arrive), lambda op: [replace(op, ctas="self")]),
        {E.DEADLOCK, E.ARRIVALS, E.ALIASING},
    ),
    "the producer leaves before its stages return": (
        without(PAIR, "producer", lambda op: isinstance(op, Loop) and op.var == "tail"), {E.EXITED},
    ),
    "no cluster barrier after the allocation": (
        replace(PAIR, roles=tuple(replace(r, before=tuple(o for o in r.before if not isinstance(o, ClusterBarrier)))
                                  for r in PAIR.roles)), {E.EARLY, E.TMEM, E.LAUNCHED},
    ),
    "a pair allocates before both CTAs run": (
        replace(PAIR, roles=tuple(replace(r, before=(*(o for o in r.before if not isinstance(o, ClusterBarrier)),
                                                     ClusterBarrier())) for r in PAIR.roles)), {E.LAUNCHED},
    ),
    "never freed": (without(ONE, "multiplier", of_kind(TmemDealloc)), {E.TMEM}),
    "freed twice": (
        change(ONE, "multiplier", of_kind(TmemDealloc), lambda op: [op, op]), {E.TMEM},
    ),
    "freed while it is read": (
        swapped(ONE, "multiplier", lambda op: op == ONE.roles[1].after[0], of_kind(TmemDealloc)), {E.TMEM},
    ),
    "freed in part": (
        change(ONE, "multiplier", of_kind(TmemDealloc), lambda op: [TmemDealloc(256)]), {E.TMEM},
    ),
    "allocated after giving up": (
        swapped(ONE, "multiplier", of_kind(TmemAlloc), of_kind(TmemRelinquish)), {E.TMEM},
    ),
    "more columns than there are": (
        change(ONE, "multiplier", of_kind(TmemAlloc), lambda op: [TmemAlloc(512), TmemAlloc(32)]), {E.TMEM},
    ),
    "no power of two": (change(ONE, "multiplier", of_kind(TmemAlloc), lambda op: [TmemAlloc(96)]), {E.TMEM}),
    "a response is not waited for": (without(CLC, "producer", is_wait("clc_full")), {E.INCOMPLETE, E.ALIASING}),
    "a response is overwritten before it is read": (
        without(CLC, "scheduler", is_wait("clc_empty")), {E.OVERWRITE, E.ARRIVALS, E.ALIASING, E.BYTES},
    ),
    "a consumer of responses does not count": (
        counted(CLC, "clc_empty", 5), {E.ARRIVALS, E.OVERWRITE, E.ALIASING},
    ),
    "another request after a failure": (
        replace(CLC, roles=tuple(
            replace(r, work=(*r.work, Wait("clc_full", At("clc", -1)), ClcQuery(Ref("response", At("clc", -1), ahead=0,
                             tag=())), ClcRequest(Ref("response", At("clc"), tag=("tile",)), "clc_full", At("clc"))))
            if r.name == "scheduler" else r for r in CLC.roles)), {E.CLC, E.INCOMPLETE},
    ),
    "P is read before it is written": (without(attention(), "multiplier", is_wait("p_full")), {E.INCOMPLETE}),
    "S is overwritten while it is read": (
        # Without the wait for P nothing tells the multiplier that S was read; with one slot it overwrites it.
        replace(without(attention(), "softmax", of_kind(Read)), name="x"), set(),
    ),
    "a named barrier for too few threads": (
        change(attention(), "softmax", of_kind(NamedBarrier), lambda op: [NamedBarrier(1, 96)]), {E.NAMED},
    ),
    "a named barrier for too many threads": (
        change(attention(), "softmax", of_kind(NamedBarrier), lambda op: [NamedBarrier(1, 160)]), {E.NAMED},
    ),
    "the barrier of __syncthreads by name": (
        change(attention(), "softmax", of_kind(NamedBarrier), lambda op: [NamedBarrier(0, 128)]), {E.NAMED},
    ),
}  # fmt: skip
del BROKEN["S is overwritten while it is read"]


@pytest.mark.parametrize("what", BROKEN)
def test_broken_protocols_are_caught_by_name(what):
    program, names = BROKEN[what]
    outcome = check(program)
    assert not outcome.proven
    assert outcome.violation.kind in names, outcome.violation


def test_a_named_barrier_shared_by_two_roles_is_a_conflict():
    program = change(attention(), "producer", of_kind(Wait), lambda op: [NamedBarrier(1, 64), op])
    assert check(program).violation.kind == E.NAMED


# Query blocks without keys: of a sequence of length zero, or masked entirely beside others that are not.
MASKED = {"every second row block": second_rows_masked, "causal, from none": causal, "none or all": every_block}


@pytest.mark.parametrize("what", MASKED)
def test_rows_without_keys_are_left_out_by_all_roles(what):
    outcome = check(attention(blocks=MASKED[what]), (0, 1, 2, 3, 4))
    assert outcome.proven, outcome.violation
    assert 0 in outcome.k_tiles


@pytest.mark.parametrize("what", MASKED)
@pytest.mark.parametrize("role", ["multiplier", "softmax"])
def test_a_role_that_expects_keys_of_masked_rows_is_caught(what, role):
    """It waits for an accumulator that nobody fills, or hands one on (to the end of the CTA) that nobody expects."""
    right, wrong = attention(blocks=MASKED[what]), attention(guarded=False, blocks=MASKED[what])
    other = next(r for r in wrong.roles if r.name == role)
    outcome = check(replace(right, roles=tuple(other if r.name == role else r for r in right.roles)), (0, 1, 2, 3, 4))
    assert not outcome.proven
    kinds = {E.DEADLOCK, E.INCOMPLETE, E.ALIASING, E.OVERWRITE, E.ARRIVALS, E.IN_FLIGHT}
    assert outcome.violation.kind in kinds, outcome.violation


def test_roles_that_count_masked_blocks_differently_are_caught():
    """The producer still loads what the others leave out."""
    right, wrong = attention(blocks=causal), attention()
    producer = next(r for r in wrong.roles if r.name == "producer")
    outcome = check(replace(right, roles=tuple(producer if r.name == "producer" else r for r in right.roles)))
    assert outcome.violation.kind == E.TRIPS, outcome.violation
