"""Everything that follows from a spec, by arithmetic or by protocol. Pure, frozen, no wording."""

from __future__ import annotations

import importlib

from kgen.plan.common import GemmPlan

# Imported when asked for: a command plans for one architecture.
_PLANNERS = {("gemm", "sm_90a"): "kgen.plan.gemm_sm90a", ("gemm", "sm_100a"): "kgen.plan.gemm_sm100a"}


def make_plan(spec) -> GemmPlan:
    """The plan of a validated spec; raises PlanError with all limits it exceeds."""
    return importlib.import_module(_PLANNERS[spec.kernel, spec.arch]).make_plan(spec)
