"""Plan -> protocol program, by architecture."""

from __future__ import annotations

from kgen.plan.common import GemmPlan
from kgen.protocol import gemm_sm90a, gemm_sm100a
from kgen.protocol.program import Program

_PROGRAMS = {"sm_90a": gemm_sm90a.program_of, "sm_100a": gemm_sm100a.program_of}


def program_of(plan: GemmPlan) -> Program:
    """The protocol of a plan; raises KeyError for an architecture that has none."""
    return _PROGRAMS[plan.arch.name](plan)


def tiles_per_cta(plan: GemmPlan) -> tuple[int, ...]:
    """Tiles that one CTA may compute: any number where CTAs are persistent or granted more."""
    if plan.schedule == "clc":
        return (1, 2, 3)  # its own, then as many as it is granted: 1 is a first request that fails
    return (0, 1, 2, 3) if plan.schedule == "persistent" else (1,)
