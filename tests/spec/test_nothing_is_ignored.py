"""Every field that a spec may set changes what is generated, or is refused by name."""

import json
import typing

import pytest
import yaml
from pydantic import BaseModel

from kgen.errors import PlanError, SpecError
from kgen.plan import make_plan
from kgen.presets import all_presets
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.fields import bounds

# Presets that between them have every schedule, load, store and set of roles.
STEMS = ("step1", "step3", "step4", "step6", "step9", "clc", "split_k")
BASES = {p.reference: p for p in all_presets() if p.path.stem in STEMS}
SAME = {("tile.k", "auto"): "what a row holds anyway"}  # values that say what is so without them
UNCHANGING = {"kernel", "arch", "name", "about", "ops"}  # names, and a list that its own tests go through


def others(model: type[BaseModel], path: tuple[str, ...] = ()):
    """Each field with a few of the values that it takes."""
    for name, info in model.model_fields.items():
        if name in UNCHANGING:
            continue
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from others(info.annotation, (*path, name))
            continue
        words = [a for a in _parts(info.annotation) if typing.get_origin(a) is typing.Literal]
        values = [value for word in words for value in typing.get_args(word)]
        legal = bounds(model, (name,))
        if legal.high < 10**6:
            values += [int(legal.low), int(legal.low + legal.step)]
        for value in values:
            yield (*path, name), value


def _parts(annotation):
    return (annotation,) if typing.get_origin(annotation) is typing.Literal else typing.get_args(annotation)


def generated(data: dict):
    """All files of the project; None where the spec is refused."""
    try:
        return render_project(make_plan(parse_spec(json.dumps(data)).spec), "")
    except (SpecError, PlanError):
        return None


def changed(data: dict, path: tuple[str, ...], value) -> dict:
    data = json.loads(json.dumps(data))
    *sections, name = path
    inner = data
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[name] = value
    return data


@pytest.mark.parametrize("base", BASES)
def test_a_field_changes_the_project_or_is_refused(base):
    text = BASES[base].text
    data, spec = yaml.safe_load(text), parse_spec(text).spec
    before, tried = generated(data), 0
    for path, value in others(type(spec)):
        is_now = spec
        for part in path:
            is_now = getattr(is_now, part)
        after = generated(changed(data, path, value)) if value != is_now else None
        tried += after is not None
        assert after != before or (".".join(path), value) in SAME, f"{'.'.join(path)}: {value} is ignored"
    assert tried > 5


def test_an_ignored_value_that_is_the_default_may_stand():
    data = yaml.safe_load(BASES["sm_90a/gemm/6"].text)
    assert data["schedule"]["group_m"] == 8
    assert generated(changed(data, ("schedule", "kind"), "grid"))
