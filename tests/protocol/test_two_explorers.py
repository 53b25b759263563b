"""The proof by order and the search of every interleaving say the same of small protocols, right and wrong."""

import random
from dataclasses import replace

import pytest
from blackwell import attention, gemm
from mutations import MUTATIONS

from kgen.plan import make_plan
from kgen.presets import preset
from kgen.protocol import events, program_of
from kgen.protocol.order import execute
from kgen.protocol.search import SearchLimit, search
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values


def of_preset(step, *changes):
    return shrunk(program_of(make_plan(parse_spec(set_values(preset("gemm", step, "sm_90a").text, list(changes))).spec)))


def shrunk(program):
    """With two warps where there are four: enough for one to run ahead of another, and few enough to search."""
    return replace(
        program,
        roles=tuple(replace(r, warps=2 if r.warps == 4 else r.warps) for r in program.roles if r.name != "idle"),
        barriers=tuple(replace(b, count=b.count // 2 if b.count % 4 == 0 else b.count) for b in program.barriers),
        buffers=tuple(replace(b, parts=2 if b.parts == 4 else b.parts) for b in program.buffers),
    )


SHALLOW = "pipeline.stages=2"
SMALL = {
    "threads": (of_preset(2), [(1, 1), (2, 1), (3, 1), (1, 2)]),
    "one stage": (of_preset(4, "epilogue.store=direct"), [(1, 1), (2, 1), (3, 1), (1, 2)]),
    "ring": (of_preset(5, SHALLOW, "epilogue.store=direct"), [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2)]),
    "roles": (of_preset(7, SHALLOW), [(1, 1), (2, 1), (3, 1), (5, 1), (1, 2), (1, 3), (2, 2)]),
    "two consumers": (of_preset(7, SHALLOW, "warps.consumers=2", "epilogue.store=direct"), [(1, 1), (3, 1), (5, 1)]),
    "cluster": (of_preset(8, SHALLOW, "epilogue.store=direct"), [(1, 1)]),
}
# Properties of single steps, which the search does not look at.
NOT_SEARCHED = {events.TMEM, events.CLC, events.CTA_WIDE, events.TRIPS}


def agree(program, trips) -> bool | None:
    """Whether both prove, or both reject; None where the search would take too long or does not look."""
    _, violation = execute(program, trips)
    if violation and violation.kind in NOT_SEARCHED:
        return None
    try:
        _, kind = search(program, trips, limit=30_000)
    except SearchLimit:
        return None
    return (kind is None) == (violation is None)


def trips_of(k, tiles):
    return {"k_tiles": k, "tiles": tiles}


@pytest.mark.parametrize("name", SMALL)
def test_right_protocols_are_proven_by_both(name):
    program, bounds = SMALL[name]
    for k, tiles in bounds:
        assert execute(program, trips_of(k, tiles))[1] is None
        assert agree(program, trips_of(k, tiles)) is not False


@pytest.mark.parametrize("kind", MUTATIONS)
def test_mutants_get_the_same_verdict(kind):
    mutate, _ = MUTATIONS[kind]
    compared = 0
    for name, (program, bounds) in SMALL.items():
        for seed in range(3):
            mutant = mutate(program, random.Random(seed))
            if mutant is None:
                continue
            for k, tiles in bounds[:5]:
                same = agree(mutant, trips_of(k, tiles))
                assert same is not False, (name, seed, k, tiles)
                compared += same is not None
    assert compared or kind in ("__syncthreads in a role", "trip counts", "uneven grid")


@pytest.mark.parametrize("program", [gemm(stages=2, slots=1, warps=2), attention(warps=1)], ids=["tcgen05", "attention"])
def test_tcgen05_protocols_are_proven_by_both(program):
    compared = 0
    for k, tiles in ((1, 1), (2, 1), (3, 1), (1, 2)):
        same = agree(program, trips_of(k, tiles))
        assert same is not False
        compared += same is not None
    assert compared


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
