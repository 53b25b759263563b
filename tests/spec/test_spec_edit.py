"""Values are set in the text, and everything else stays byte for byte."""

import pytest
import yaml

from kgen.errors import SpecError, UsageError
from kgen.presets import presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

HEAD = "kernel: gemm  # the family\narch: sm_90a\nname: x\n"

EDITS = {
    "scalar, comment kept": (
        "pipeline:\n  stages: 4  # in flight\n",
        "pipeline.stages=3",
        "pipeline:\n  stages: 3  # in flight\n",
    ),
    "in a flow mapping": (
        "tile: {m: 64, n: 256, k: 64}  # t\n", "tile.n=128", "tile: {m: 64, n: 128, k: 64}  # t\n",
    ),
    "whole flow mapping": (
        "cluster: {size: 1, multicast: none} # c\n",
        "cluster={size: 2, multicast: b}",
        "cluster: {size: 2, multicast: b} # c\n",
    ),
    "whole block mapping": (
        "schedule:\n  kind: grid\n  group_m: 8\nload: tma\n",
        "schedule={kind: single}",
        "schedule: {kind: single}\nload: tma\n",
    ),
    "missing in a block, in the model's order": (
        "schedule:\n  kind: persistent  # walks\n  # why\n  ctas: auto\n",
        "schedule.group_m=4",
        "schedule:\n  kind: persistent  # walks\n  group_m: 4\n  # why\n  ctas: auto\n",
    ),
    "missing, first of a block": (
        "schedule:\n  ctas: auto\n",
        "schedule.kind=persistent",
        "schedule:\n  kind: persistent\n  ctas: auto\n",
    ),
    "missing in a flow mapping": ("tile: {m: 64}\n", "tile.n=64", "tile: {m: 64, n: 64}\n"),
    "missing, first of a flow mapping": ("tile: {n: 64}\n", "tile.m=64", "tile: {m: 64, n: 64}\n"),
    "in an empty flow mapping": ("tile: {}\n", "tile.n=64", "tile: {n: 64}\n"),
    "below an empty key": ("tile:\nload: tma\n", "tile.n=64", "tile: {n: 64}\nload: tma\n"),
    "missing parent": ("load: tma\n", "pipeline.stages=3", "load: tma\npipeline: {stages: 3}\n"),
    "missing parents": (
        "load: tma\n",
        "warps.registers.producer=24",
        "load: tma\nwarps: {registers: {producer: 24}}\n",
    ),
    "no newline at the end": ("load: tma", "k_loop=once", "load: tma\nk_loop: once\n"),
    "folded text": (
        "about: >-\n  Some words\n  and more.\n\nload: tma\n", "about=Short", "about: Short\n\nload: tma\n",
    ),
    "text that needs quotes": ("load: tma\n", "about=a: b # c, {d}", 'about: "a: b # c, {d}"\nload: tma\n'),
    "text that looks like something else": ("about: a\n", "about=yes", 'about: "yes"\n'),
    "text with an equals sign": ("about: a\n", "about=x=1", 'about: "x=1"\n'),
    "windows lines": (
        "schedule:\r\n  kind: grid\r\n",
        "schedule.group_m=2",
        "schedule:\r\n  kind: grid\r\n  group_m: 2\r\n",
    ),
    "empty mapping at the end": ("tile:", "tile.m=64", "tile: {m: 64}"),
    "quoted key": ('"load": tma\n', "load=threads", '"load": threads\n'),
    "null": ("warps: {registers: {producer: 40}}\n", "warps.registers=null", "warps: {registers: null}\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_only_the_value_changes(case):
    before, assignment, after = EDITS[case]
    assert set_values(HEAD + before, [assignment]) == HEAD + after
    field, _, _ = assignment.partition("=")
    value = yaml.safe_load(HEAD + after)
    for part in field.split("."):
        value = value[part]


def test_assignments_apply_in_order():
    text = set_values(HEAD, ["pipeline.stages=2", "pipeline.stages=3", "tile.m=128"])
    assert yaml.safe_load(text)["pipeline"] == {"stages": 3} and yaml.safe_load(text)["tile"] == {"m": 128}


@pytest.mark.parametrize("p", presets(), ids=lambda p: p.reference)
def test_setting_a_preset_to_what_it_is_changes_nothing(p):
    data = yaml.safe_load(p.text)
    same = [
        f"tile.m={data['tile']['m']}",
        f"schedule.kind={data['schedule']['kind']}",
        f"name={data['name']}",
    ]
    assert set_values(p.text, same) == p.text


def test_a_changed_preset_still_loads():
    text = next(p for p in presets() if p.step == 9).text
    changed = set_values(text, ["pipeline.stages=3", "warps.registers.producer=32", "schedule.ctas=128"])
    spec = parse_spec(changed).spec
    assert (spec.pipeline.stages, spec.warps.registers.producer, spec.schedule.ctas) == (3, 32, 128)
    lines, before = changed.splitlines(), text.splitlines()
    assert sum(a != b for a, b in zip(lines, before, strict=True)) == 3


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("pipeline.stages", "'pipeline.stages' is not FIELD=VALUE, as in pipeline.stages=3"),
        ("=3", "'=3' is not FIELD=VALUE, as in pipeline.stages=3"),
        ("pipeline.stages=", "'pipeline.stages=': no value after ="),
        ("pipeline.stagse=3", "'pipeline.stagse=3': unknown field (did you mean pipeline.stages?)"),
        ("stages=3", "'stages=3': unknown field (did you mean pipeline.stages?)"),
        ("m=3", "'m=3': unknown field (did you mean tile.m or problem.m?)"),
        ("pipeline.stages={", "'pipeline.stages={': '{' is no YAML value"),
        ("tile=m: 3", "'tile=m: 3': 'm: 3' is no YAML value (write a mapping in braces)"),
    ],
)
def test_a_wrong_assignment_is_refused(assignment, message):
    with pytest.raises(UsageError) as caught:
        set_values(HEAD, [assignment])
    assert str(caught.value) == message


def test_what_stands_in_the_way_is_named():
    with pytest.raises(UsageError, match=r"tile\.m: tile is no mapping in this spec"):
        set_values(HEAD + "tile: 3\n", ["tile.m=64"])
    with pytest.raises(UsageError, match="its value is an alias"):
        set_values(HEAD + "tile: {m: &m 64, n: *m}\n", ["tile.n=128"])
    with pytest.raises(SpecError, match="YAML syntax"):
        set_values("a: b: c", ["tile.m=64"])
