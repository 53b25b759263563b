"""The Blackwell presets under the protocol check."""

import pytest
from variants import preset_plans

from kgen.protocol import check_plan


@pytest.mark.parametrize("plan", preset_plans("sm_100a"), ids=lambda p: p.name)
def test_a_preset_is_proven(plan):
    outcome = check_plan(plan)
    assert outcome.proven, outcome.violation
