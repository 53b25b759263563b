"""Everything that follows from a spec, by arithmetic or by protocol. Pure, frozen, no wording."""

from __future__ import annotations

from kgen.plan import gemm_sm90a, gemm_sm100a
from kgen.plan.common import GemmPlan

_PLANNERS = {
    ("gemm", "sm_90a"): gemm_sm90a.make_plan,
    ("gemm", "sm_100a"): gemm_sm100a.make_plan,
}


def make_plan(spec) -> GemmPlan:
    """The plan of a validated spec; raises PlanError with all limits it exceeds."""
    return _PLANNERS[spec.kernel, spec.arch](spec)
