"""Failures that people reported of real kernels, rebuilt: each is caught, and told in words that lead to it."""

from dataclasses import replace

from blackwell import attention, gemm
from mutations import edit
from variants import variant_plan

from kgen.protocol import events as E
from kgen.protocol import program_of
from kgen.protocol.explore import check
from kgen.protocol.program import Arrive, AsyncLoad, AsyncMma, At, Commit, Loop, Read, Wait, When, walk
from kgen.protocol.report import report


def find(program, role, test):
    ops = next(r for r in program.roles if r.name == role).body
    return next(op for op in walk(ops) if test(op))


def test_multicast_with_an_odd_grid():
    """An odd number of tiles leaves one CTA of a cluster without work: it neither loads its slice nor releases."""
    for name in ("share_a", "cluster_of_4"):
        program = replace(program_of(variant_plan(name)), uneven={(1, "tiles"): -1})
        outcome = check(program)
        assert outcome.violation.kind == E.TRIPS
        assert "CTA 1 0 times" in outcome.violation.what and "never completes" in outcome.violation.what


def test_a_loop_of_exactly_one_iteration():
    """The releases trail by one: a consumer that releases only inside the loop hangs nobody until K is one k tile,
    where it never releases at all and the next lap of the ring waits for ever."""
    program = program_of(variant_plan("fp16"))
    for i in range(2):
        role = f"consumer {i}"
        last = find(program, role, lambda op: isinstance(op, Arrive) and op.at == At("ring", -1))
        loop = find(program, role, lambda op: isinstance(op, Loop) and op.var == "k")
        releases = [op for op in find(program, role, lambda op: isinstance(op, Loop)).body if isinstance(op, Arrive)]
        assert last and len(releases) == 1
        # The pipelined loop peels its last iteration, and peels it only where there is more than one.
        guarded = When("more than one k tile", lambda e: e["k_tiles"] > 1, (releases[0],))
        program = edit(program, role, releases[0], lambda op, guarded=guarded: [guarded])
        assert loop
    outcome = check(program)
    assert not outcome.proven and outcome.violation.kind in (E.DEADLOCK, E.ALIASING)
    assert dict(outcome.trips)["k_tiles"] == 1, report(outcome)


def test_a_query_block_with_no_keys():
    """Nothing is ever multiplied, but the epilogue reads the accumulator."""
    outcome = check(attention(guarded=False))
    assert outcome.violation.kind == E.INCOMPLETE and dict(outcome.trips)["k_tiles"] == 0
    assert "nothing has written" in outcome.violation.what
    assert check(attention()).proven


def test_a_query_block_with_no_keys_after_one_with_keys_is_no_exception():
    """Only the epilogue skips: the multiplier still commits, and the next tile's parity is wrong."""
    right, wrong = attention(), attention(guarded=False)
    multiplier = next(r for r in wrong.roles if r.name == "multiplier")
    mixed = replace(right, roles=tuple(multiplier if r.name == "multiplier" else r for r in right.roles))
    outcome = check(mixed)
    assert not outcome.proven and dict(outcome.trips)["k_tiles"] == 0


def test_a_commit_by_all_32_lanes():
    program = gemm()
    commit = find(program, "multiplier", lambda op: isinstance(op, Commit) and op.barrier == "empty")
    outcome = check(edit(program, "multiplier", commit, lambda op: [replace(op, lanes=32)]))
    assert outcome.violation.kind == E.ARRIVALS
    assert "expects 1 arrival (a commit); came: 32 by multiplier (commit)" in outcome.violation.arithmetic


def test_an_accumulator_released_before_its_last_read():
    program = gemm()
    read = find(program, "epilogue", lambda op: isinstance(op, Read))
    release = find(program, "epilogue", lambda op: isinstance(op, Arrive))
    moved = edit(edit(program, "epilogue", release, lambda op: []), "epilogue", read, lambda op: [release, op])
    outcome = check(moved)
    assert outcome.violation.kind == E.OVERWRITE
    assert "tmem_acc" in outcome.violation.what and "has yet to read" in outcome.violation.what


def test_mask_0b11_in_a_cluster_of_four():
    """Right for the first pair, and the second pair signals the first one's barriers."""
    program = gemm(pairs=2)
    assert check(program).proven
    for barrier in ("empty", "acc_full"):
        commit = find(program, "multiplier", lambda op, b=barrier: isinstance(op, Commit) and op.barrier == b)
        outcome = check(edit(program, "multiplier", commit, lambda op: [replace(op, ctas=0b11)]))
        assert not outcome.proven
        assert outcome.violation.kind in (E.ARRIVALS, E.DEADLOCK, E.ALIASING, E.EXITED, E.OVERWRITE, E.INCOMPLETE)
    # In a cluster of two the same mask is right.
    pair = gemm(pairs=1)
    commit = find(pair, "multiplier", lambda op: isinstance(op, Commit) and op.barrier == "empty")
    assert check(edit(pair, "multiplier", commit, lambda op: [replace(op, ctas=0b11)])).proven


def test_mask_0b1111_in_a_cluster_of_two():
    program = program_of(variant_plan("fp16"))
    load = find(program, "producer", lambda op: isinstance(op, AsyncLoad) and op.into.ctas == "all")
    wide = edit(program, "producer", load, lambda op: [replace(op, into=replace(op.into, ctas=0b1111))])
    assert check(wide).violation.kind == E.NO_CTA


def test_a_wait_for_every_second_phase():
    """A consumer that skips a wait lets the barrier run two phases ahead, where parity looks the same."""
    program = gemm(slots=1)
    wait = find(program, "epilogue", lambda op: isinstance(op, Wait))
    even = When("even tiles", lambda e: e["tile"] % 2 == 0, (wait,))
    outcome = check(edit(program, "epilogue", wait, lambda op: [even]))
    assert outcome.violation.kind in (E.ALIASING, E.INCOMPLETE)


def test_bytes_announced_apart_from_the_arrival():
    """expect_tx by one thread and arrival by another: the phase may complete before the bytes are announced."""
    program = gemm()
    announce = find(program, "producer", lambda op: isinstance(op, Arrive) and op.expect > 0)
    from kgen.protocol.program import ExpectTx

    late = [replace(announce, expect=0), ExpectTx("full", announce.at, announce.expect)]
    assert check(edit(program, "producer", announce, lambda op: late)).violation.kind == E.BYTES
    early = [ExpectTx("full", announce.at, announce.expect), replace(announce, expect=0)]
    assert check(edit(program, "producer", announce, lambda op: early)).proven


def test_an_issuer_that_multiplies_before_its_slot_is_free():
    program = gemm(slots=1)
    mma = find(program, "multiplier", lambda op: isinstance(op, AsyncMma))
    assert mma.fresh == "k"
    wait = find(program, "multiplier", lambda op: isinstance(op, Wait) and op.barrier == "acc_empty")
    late = edit(program, "multiplier", wait, lambda op: [])
    outcome = check(late)
    assert outcome.violation.kind in (E.OVERWRITE, E.ARRIVALS, E.ALIASING)
