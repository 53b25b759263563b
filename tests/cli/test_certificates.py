"""Kept proofs: used for the same plan by the same checker, and for nothing else."""

from dataclasses import replace

import pytest
from variants import named_plans

from kgen.certificates import certificate

PLAN = named_plans("sm_90a")["gemm_step8"]


@pytest.fixture
def proofs(monkeypatch, tmp_path):
    """Plans that were proven, in order; the cache is empty at first."""
    import kgen.protocol

    made, certify = [], kgen.protocol.certify
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KGEN_TEMPLATE_CACHE", raising=False)
    monkeypatch.setattr("kgen.protocol.certify", lambda plan: (made.append(plan.name), certify(plan))[1])
    return made


def test_the_same_plan_is_proven_once(proofs):
    assert certificate(PLAN) == certificate(PLAN) and proofs == ["gemm_step8"]


def test_another_plan_or_a_damaged_file_is_proven_again(proofs, tmp_path):
    proven = certificate(PLAN)
    certificate(replace(PLAN, name="other"))
    assert proofs == ["gemm_step8", "other"]
    for kept in tmp_path.rglob("certificates/*"):
        kept.write_text("pro")
    assert certificate(PLAN) == proven and len(proofs) == 3


def test_the_cache_can_be_turned_off(proofs, monkeypatch):
    monkeypatch.setenv("KGEN_TEMPLATE_CACHE", "0")
    assert certificate(PLAN) == certificate(PLAN) and len(proofs) == 2
