"""The barrier-protocol checker: a plan's roles, pipelines and barriers, proven before any CUDA exists.

What is declared once, and what twice. Numbers are declared once: both the templates and `from_plan` take barrier names,
depths, arrival counts, bytes, boxes and who shares an operand from the plan. The order of operations inside a role, and
which phase a wait means, are said twice: by the template, as the CUDA that people read, and by one function of
`from_plan`, as data. To generate the one from the other was considered and left: a template that loops over operations
would no longer read like a hand-written kernel (its comments, its `k0 > 0`, its peeled last release belong to no
operation), and a program read back from CUDA text would prove whatever the reader made of it. So the two are compared
instead, call by call: tests/protocol/test_programs_match_kernels.py extracts the barrier calls of the rendered kernels
of every preset, every variant and a hundred random specs, and a drift of either side fails there.
"""

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
