"""Protocols that are wrong in one place: each is rejected, under a name that fits."""

import random
from collections import Counter

import pytest
from mutations import MUTATIONS, edit
from variants import named_plans

from kgen.protocol import program_of
from kgen.protocol.explore import check
from kgen.protocol.program import WaitGroup, walk
from kgen.protocol.report import report

PLANS = named_plans("sm_90a")
# One warpgroup that walks tiles needs a barrier between them, which a kernel of one tile per CTA has not.
BLACKWELL = {f"sm_100a {name}": p for name, p in named_plans("sm_100a").items() if p.schedule == "persistent"}
# Proven although something is missing, and rightly so.
HARMLESS = {
    # The accumulator's commit follows those of the ring, so that the first tile's fills find what they wait for.
    "order": {"gemm_step6", "b_fp32_out_unified", "b_n32_fp32"},
    # Neither does the last lap of the ring add anything to it in the CTA that issues.
    "advance dropped": {"gemm_step9", "b_fp16", "b_fp32_out", "b_direct_store", "b_two_by_two",
                        "b_split_two_consumers", "b_shallow", "b_fixed_ctas", "b_finished_pairs"},
    # The barrier between tiles and the last one follow each other; k tiles have one of their own.
    "__syncthreads dropped": {"b_persistent_threads"},
}  # fmt: skip


def tiles(plan):
    """A kernel of one k tile never uses a buffer twice and has no barrier that a second tile would need."""
    return (1,) if plan.k_tiles else (0, 1, 2, 3)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_mutant_is_rejected_by_name(kind):
    """Every plan, three places each. Kernels of one tile are checked as if they walked tiles, because the last release
    of a ring that nobody uses again may as well be missing."""
    mutate, names = MUTATIONS[kind]
    told = Counter()
    for name, plan in (PLANS | BLACKWELL).items():
        for seed in range(3):
            mutant = mutate(program_of(plan), random.Random(seed))
            if mutant is None:
                continue
            outcome = check(mutant, tiles(plan))
            if outcome.proven and name.removeprefix("sm_100a ") in HARMLESS.get(kind, ()) and name in BLACKWELL:
                continue
            assert not outcome.proven, (name, seed)
            told[outcome.violation.kind] += 1
            lines = report(outcome).splitlines()
            assert outcome.violation.what and outcome.violation.hint and len(lines) <= 50, report(outcome)
    print(f"{kind}: {told.total()} mutants, all rejected: {dict(told)}")
    assert told and set(told) <= names, told


@pytest.mark.parametrize("name", PLANS | BLACKWELL)
def test_what_is_not_mutated_is_proven(name):
    plan = (PLANS | BLACKWELL)[name]
    assert check(program_of(plan), tiles(plan)).proven


def test_a_counterexample_ends_in_the_step_that_is_wrong():
    program = program_of(PLANS["gemm_step9"])
    role = "consumer 1"
    wait = next(op for r in program.roles if r.name == role for op in walk(r.work) if op == WaitGroup(1))
    text = report(check(edit(program, role, wait, lambda op: [])))
    assert "producer of CTA 0 overwrites b[0] of CTA 0, which consumer 1 of CTA 0 still reads" in text, text
    columns, *rows = [line for line in text.splitlines() if "|" in line or line.startswith("CTA 0")]
    last = rows[-1]
    assert "load b[0]@0,1 (0.4)" in last, text
    assert last.index("load") == columns.index("CTA 0 producer"), text


def test_the_barriers_arithmetic_is_told():
    mutate, _ = MUTATIONS["count + 1"]
    text = report(check(mutate(program_of(PLANS["gemm_step8"]), random.Random(0))))
    assert "barrier: empty[0] of CTA" in text and "expects 9 arrivals (consumer: 4 warps of 2 CTAs)" in text, text
    assert "came: 8 by consumer" in text, text
