"""The barrier-protocol checker: a plan's roles, pipelines and barriers, proven before any CUDA exists."""

from __future__ import annotations

from kgen.plan.common import GemmPlan
from kgen.protocol.explore import Outcome, check
from kgen.protocol.from_plan import program_of, tiles_per_cta


def check_plan(plan: GemmPlan) -> Outcome:
    """Proves the protocol of a plan, or finds the shortest execution in which it fails."""
    return check(program_of(plan), tiles_per_cta(plan))
