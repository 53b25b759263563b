"""Reports: the same on every machine, small, and true to the trace."""

import random
import re
import xml.etree.ElementTree as ElementTree

from mutations import MUTATIONS
from variants import variant_plan

from kgen.protocol import check_plan, program_of
from kgen.protocol.explore import check
from kgen.protocol.report import diagram, report, to_json
from kgen.protocol.svg import svg

PLAN = variant_plan("cluster_of_4")


def broken(kind, seed=0):
    return check(MUTATIONS[kind][0](program_of(PLAN), random.Random(seed)))


def test_the_certificate_is_one_line_with_the_bounds():
    line = check_plan(PLAN).certificate
    assert re.fullmatch(r"proven: [\d,]+ states, k tiles \{1, 3, 4, 5, 9\}, tiles per CTA \{0, 1, 2, 3, 9\}, "
                        r"a cluster of 4", line), line  # fmt: skip
    assert line == check_plan(PLAN).certificate


def test_reports_are_the_same_every_time():
    for kind in ("count + 1", "mask", "early release"):
        assert report(broken(kind)) == report(broken(kind))
        outcome = broken(kind)
        assert svg("x", outcome.violation) == svg("x", broken(kind).violation)


def test_diagrams_stay_small():
    for kind in MUTATIONS:
        for seed in range(3):
            outcome = None
            if MUTATIONS[kind][0](program_of(PLAN), random.Random(seed)) is not None:
                outcome = broken(kind, seed)
            if outcome and outcome.violation.trace:
                d = diagram(outcome.violation)
                assert 1 <= len(d.columns) <= 5 and 1 <= len(d.rows) <= 42, (kind, seed, len(d.rows))


def test_the_svg_says_what_the_text_says():
    outcome = broken("count + 1")
    root = ElementTree.fromstring(svg("kernel", outcome.violation))
    words = [e.text for e in root.iter() if e.tag.endswith("text")]
    d = diagram(outcome.violation)
    for text in (*d.columns, *(t for _, t in d.rows), outcome.violation.arithmetic):
        assert text in words


def test_json_holds_the_same():
    outcome = broken("bytes + 16")
    data = to_json(outcome)
    assert not data["proven"] and data["certificate"] is None
    assert data["violation"]["kind"] == "expected bytes differ from delivered bytes"
    assert data["violation"]["at"] == {"k_tiles": 1, "tiles": 1} and data["violation"]["trace"]
    assert to_json(check_plan(PLAN))["certificate"].startswith("proven: ")
