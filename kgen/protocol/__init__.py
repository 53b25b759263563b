"""The barrier-protocol checker: a plan's roles, pipelines and barriers, proven before any CUDA exists."""

from __future__ import annotations

from kgen.errors import ProtocolError
from kgen.plan.common import GemmPlan
from kgen.protocol.explore import Outcome, check
from kgen.protocol.from_plan import program_of, tiles_per_cta


def check_plan(plan: GemmPlan) -> Outcome:
    """Proves the protocol of a plan, or finds the shortest execution in which it fails."""
    return check(program_of(plan), tiles_per_cta(plan))


def certify(plan: GemmPlan) -> str:
    """The certificate of a plan, one line. Raises ProtocolError, with the report, where a property or a fact fails."""
    from kgen.protocol.facts import broken_facts

    outcome, broken = check_plan(plan), broken_facts(plan)
    if outcome.proven and not broken:
        return outcome.certificate
    from kgen.protocol.report import report

    told = [report(outcome)] if not outcome.proven else []
    raise ProtocolError("\n".join([*told, *(f"{plan.name}: {b}" for b in broken), "(--unchecked goes on regardless)"]))
