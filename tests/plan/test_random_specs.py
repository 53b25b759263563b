"""Any spec either becomes a plan or is explained, each message with a place in the file."""

import re

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgen.errors import PlanError, SpecError
from kgen.explain import explain
from kgen.plan import make_plan
from kgen.protocol import check_plan
from kgen.protocol.facts import broken_facts
from kgen.spec.base import parse_spec

LOCATED = re.compile(r"f\.yaml:[1-9]\d*:[1-9]\d*: \S.*\S", re.DOTALL)


def section(**fields):
    return st.fixed_dictionaries({}, optional=fields)


multiples = st.sampled_from([8, 16, 24, 64, 72, 128, 192, 256])
SPECS = st.fixed_dictionaries(
    {"kernel": st.just("gemm"), "arch": st.just("sm_90a"), "name": st.just("x")},
    optional={
        "dtype": section(input=st.sampled_from(["bf16", "fp16"]), output=st.sampled_from(["bf16", "fp32"])),
        "tile": section(m=st.sampled_from([64, 128, 192, 256]), n=multiples),
        "load": st.sampled_from(["threads", "tma"]),
        "k_loop": st.sampled_from(["once", "loop"]),
        "schedule": section(
            kind=st.sampled_from(["single", "grid", "persistent"]),
            ctas=st.sampled_from(["auto", 1, 7, 132]),
            ctas_per_sm=st.integers(1, 8),
        ),
        "pipeline": section(stages=st.integers(1, 32)),
        "warps": section(
            roles=st.sampled_from(["unified", "specialized"]),
            consumers=st.integers(1, 3),
            registers=st.none() | section(producer=multiples, consumer=multiples),
        ),
        "cluster": section(size=st.sampled_from([1, 2, 4]), multicast=st.sampled_from(["none", "a", "b"])),
        "epilogue": section(store=st.sampled_from(["direct", "tma"]), staging=st.integers(1, 8)),
        "problem": section(m=st.integers(1, 10**6), n=st.integers(1, 10**6), k=st.integers(1, 10**6)),
    },
)

BLACKWELL = st.fixed_dictionaries(
    {"kernel": st.just("gemm"), "arch": st.just("sm_100a"), "name": st.just("x")},
    optional={
        "dtype": section(input=st.sampled_from(["bf16", "fp16"]), output=st.sampled_from(["bf16", "fp16", "fp32"])),
        "tile": section(n=st.sampled_from([32, 64, 96, 128, 160, 192, 224, 256])),
        "load": st.sampled_from(["threads", "tma"]),
        "k_loop": st.sampled_from(["once", "loop"]),
        "schedule": section(
            kind=st.sampled_from(["single", "grid", "persistent"]),
            ctas=st.sampled_from(["auto", 1, 6, 148]),
            ctas_per_sm=st.integers(1, 8),
            group_m=st.integers(1, 64),
        ),
        "pipeline": section(stages=st.integers(1, 16), accumulators=st.integers(1, 2)),
        "warps": section(
            roles=st.sampled_from(["unified", "specialized"]),
            consumers=st.integers(1, 2),
            registers=st.none() | section(control=multiples, epilogue=multiples),
        ),
        "cluster": section(cta_group=st.integers(1, 2)),
        "epilogue": section(store=st.sampled_from(["direct", "tma"]), staging=st.integers(1, 8)),
        "problem": section(m=st.integers(1, 10**6), n=st.integers(1, 10**6), k=st.integers(1, 10**6)),
    },
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["kernel", "arch", "name", "tile", "load", "schedule", "pipeline", "warps", "cluster", "stages"]


def outcome(text):
    """The plan, or the messages, of which each must have a place."""
    try:
        loaded = parse_spec(text, "f.yaml")
        try:
            return make_plan(loaded.spec)
        except PlanError as error:
            raise loaded.located(error) from None
    except SpecError as error:
        assert error.problems
        assert all(LOCATED.fullmatch(str(p)) for p in error.problems), str(error)
        return None


def planned_and_within_the_machine(data) -> bool:
    """Whether a spec is planned; then it must fit. A refusal has been checked to have its place."""
    plan = outcome(yaml.safe_dump(data, sort_keys=False))
    if plan is None:
        return False
    assert plan.smem.bytes <= plan.arch.smem_per_cta
    assert plan.launch.threads <= plan.arch.max_threads_per_cta
    found = explain(plan)
    assert found.registers.used <= found.registers.limit
    assert found.smem.free >= 0 and found.waves.waves >= 1 and 0 < found.waves.last_wave <= 1
    if plan.tmem:
        assert plan.tmem.used <= plan.tmem.allocated <= plan.arch.tmem_columns // plan.launch.ctas_per_sm
    return True


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SPECS)
def test_a_well_formed_spec_is_planned_or_explained(data):
    planned_and_within_the_machine(data)


def many_blackwell_specs(count: int) -> None:
    """Random specs for sm_100a: each is planned, proven and free of broken facts, or explained."""

    @settings(max_examples=count, deadline=None, derandomize=True, database=None)
    @given(BLACKWELL)
    def prove(data):
        if planned_and_within_the_machine(data):
            plan = outcome(yaml.safe_dump(data, sort_keys=False))
            assert check_plan(plan).proven and not broken_facts(plan), data

    prove()


def test_a_well_formed_spec_for_blackwell_is_proven_or_explained():
    many_blackwell_specs(200)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_two_thousand_specs_for_blackwell_are_proven_or_explained():
    many_blackwell_specs(2_000)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=6), anything, max_size=6), SPECS | BLACKWELL)
def test_nonsense_in_a_spec_is_explained(nonsense, spec):
    outcome(yaml.safe_dump({**spec, **nonsense}, sort_keys=False, allow_unicode=True))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text(alphabet="kernel: gm\n{}[],&*!|>-#'\"\t%@?0\\", max_size=60))
def test_nonsense_for_a_spec_is_explained(text):
    outcome(text)
    outcome(f"kernel: gemm\narch: sm_90a\nname: x\n{text}")
