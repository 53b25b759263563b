"""docs/spec.md says what the models say."""

from pathlib import Path

from kgen.reference import spec_reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "spec.md"


def test_reference_is_fresh():
    assert DOCUMENT.read_text() == spec_reference(), "`kgen schema --markdown -o docs/spec.md` updates it"


def test_every_rule_says_what_it_wants():
    assert "_" not in "".join(line for line in spec_reference().splitlines() if line.startswith("- _"))
