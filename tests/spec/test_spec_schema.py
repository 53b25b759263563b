import json
from pathlib import Path

from kgen.presets import presets, spec_root
from kgen.schema import schema_text, spec_schema
from kgen.spec.families import variants
from kgen.spec.fields import field_paths, model_at


def test_the_committed_schema_is_fresh():
    committed = (spec_root() / "schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "update it: kgen schema -o specs/schema.json"


def test_every_preset_points_its_editor_at_the_schema():
    for p in presets():
        first = p.path.read_text().splitlines()[0]
        target = first.removeprefix("# yaml-language-server: $schema=")
        assert (p.path.parent / target).resolve() == (spec_root() / "schema.json").resolve(), p.reference


def test_the_schema_refuses_unknown_fields_and_describes_every_value():
    schema = spec_schema()
    assert json.loads(schema_text()) == schema
    objects = list(schema["$defs"].values())
    assert all(o["additionalProperties"] is False for o in objects)
    for variant in variants():
        for path in field_paths(variant.model):
            *above, name = path.split(".")
            info = model_at(variant.model, tuple(above)).model_fields[name]
            assert info.description or model_at(variant.model, tuple(path.split("."))), (
                f"{path}: no description"
            )


def test_presets_are_numbered_without_holes_and_say_what_they_add():
    for arch in {p.arch for p in presets()}:
        found = presets("gemm", arch)
        assert [p.step for p in found] == list(range(1, len(found) + 1))
        assert len({p.adds for p in found}) == len(found) and all(p.adds and p.title for p in found)
        assert all(Path(p.path).name == f"step{p.step}.yaml" for p in found)
