"""Whatever legal spec a user types is proven, and soon."""

import statistics
import time

import pytest
from hypothesis import HealthCheck, assume, given, settings
from legal_specs import blackwell_specs, plan_or_none, specs

from kgen.protocol import check_plan
from kgen.protocol.facts import broken_facts
from kgen.protocol.report import report


def prove_random_specs(count: int, strategy=specs) -> list[float]:
    """Proves `count` random legal specs; processor seconds of each."""
    seconds = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None,
              suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])  # fmt: skip
    @given(strategy())
    def prove(data):
        plan = plan_or_none(data)
        assume(plan is not None)
        start = time.process_time()
        outcome = check_plan(plan)
        seconds.append(time.process_time() - start)
        assert outcome.proven, f"{data}\n{report(outcome)}"
        assert not broken_facts(plan), data

    prove()
    return seconds


def assert_quick(seconds: list[float]) -> None:
    print(f"{len(seconds)} specs: median {statistics.median(seconds):.3f} s, most {max(seconds):.3f} s")
    assert statistics.median(seconds) <= 0.3 and max(seconds) <= 2


def test_random_legal_specs_are_proven():
    seconds = prove_random_specs(320)
    assert len(seconds) >= 300
    assert_quick(seconds)


def test_random_legal_specs_for_blackwell_are_proven():
    seconds = prove_random_specs(200, blackwell_specs)
    assert len(seconds) >= 200
    assert_quick(seconds)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_two_thousand_random_legal_specs_for_blackwell_are_proven():
    seconds = prove_random_specs(2_000, blackwell_specs)
    assert len(seconds) >= 2_000
    assert_quick(seconds)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_two_thousand_random_legal_specs_are_proven():
    seconds = prove_random_specs(2_000)
    assert len(seconds) >= 2_000
    assert_quick(seconds)
