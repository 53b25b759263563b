"""Loading a spec: YAML text -> validated, frozen Spec, or every mistake at once with its place."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import BaseModel, ValidationError

from kgen.errors import PlanError, Problem, Refusal, SpecError, UsageError
from kgen.spec.families import FAMILIES, Family, Variant
from kgen.spec.messages import explain, meant_field, nearest
from kgen.spec.positions import Document, Path, parse


@dataclass(frozen=True)
class LoadedSpec:
    """A spec with the text it came from, so that later refusals can point into the file."""

    spec: BaseModel
    doc: Document

    @property
    def text(self) -> str:
        return self.doc.text

    def located(self, error: PlanError) -> SpecError:
        """The plan's refusals as problems with file, line and column."""
        return SpecError([_locate(r, self.doc) for r in error.refusals])


def load_spec(path: FilePath | str) -> LoadedSpec:
    """Read and validate a spec file; raises UsageError (no such file) or SpecError (all problems)."""
    path = FilePath(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such file (`kgen list` shows the presets; `kgen new` scaffolds one)"
        ) from None
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: cannot be read: {e}") from None
    return parse_spec(text, str(path))


def parse_spec(text: str, file: str = "spec.yaml") -> LoadedSpec:
    """Validate spec text; `file` is only used in messages."""
    doc = parse(text, file)
    data = doc.data
    family = _variant(_family(doc), doc)
    problems: list[Problem] = []
    unsure: set[str] = set()  # fields about which nothing more can be said
    try:
        spec = family.model.model_validate(data)
    except ValidationError as e:
        mistakes = _by_field(e.errors(), data)
        unsure = {
            ".".join(map(str, p)) for path in mistakes for p in (path, meant_field(path, family.model)) if p
        }
        problems = [
            _unknown_arch(family, doc)
            if path == ("arch",) and "arch" in data
            else explain(errors, path, family.model, doc)
            for path, errors in mistakes.items()
            if not (errors[0]["type"] == "missing" and _is_meant(path, mistakes, family.model))
        ]
        spec = family.model.model_validate(_repaired(data, mistakes, family.model.EXAMPLE))
    problems += [_locate(r, doc) for r in family.rules.broken(spec, unsure)]
    if problems:
        raise SpecError(problems)
    return LoadedSpec(spec, doc)


def _family(doc: Document) -> Family:
    """The family that `kernel:` names; raises SpecError without one."""
    given = doc.data.get("kernel")
    if isinstance(given, str) and given in FAMILIES:
        return FAMILIES[given]
    hint, at = "one of: " + ", ".join(FAMILIES), doc.at(("kernel",))
    if "kernel" in doc.data:
        problem = Problem(
            doc.file,
            at.line,
            at.col,
            "kernel",
            f"unknown kernel family {given!r}",
            nearest(str(given), FAMILIES) or hint,
        )
    elif typo := next((key for key in doc.data if nearest(key, ["kernel"], cutoff=0.7)), None):
        at = doc.at((typo,), key=True)
        problem = Problem(doc.file, at.line, at.col, typo, "unknown field", "did you mean kernel?")
    else:
        problem = Problem(doc.file, at.line, at.col, "kernel", "missing", hint)
    raise SpecError([problem])


def _variant(family: Family, doc: Document) -> Variant:
    """The family on the architecture that `arch:` names; where it names none, on the one that is nearest, whose model
    then reports `arch` beside whatever else is wrong."""
    given = str(doc.data.get("arch"))
    near = difflib.get_close_matches(given, list(family.variants), n=1, cutoff=0.5)
    return family.variants[near[0]] if near else family.newest


def _by_field(errors: list, data: object) -> dict[Path, list[dict]]:
    """Pydantic's errors by the field they are about: a union reports one for each of its members."""
    found: dict[Path, list[dict]] = {}
    for error in errors:
        found.setdefault(_field_path(error["loc"], data), []).append(error)
    return found


def _unknown_arch(variant: Variant, doc: Document) -> Problem:
    known = FAMILIES[variant.kernel].variants
    at, given = doc.at(("arch",)), doc.data["arch"]
    hint = nearest(str(given), known) or "choose one of " + ", ".join(known)
    return Problem(doc.file, at.line, at.col, "arch", f"{given!r} is none of {', '.join(known)}", hint)


def _is_meant(path: Path, mistakes: Iterable[Path], model: type[BaseModel]) -> bool:
    """Whether a misspelled key stands for this one, so that it is not missing as well."""
    return any(meant_field(other, model) == path for other in mistakes)


def _locate(r: Refusal, doc: Document) -> Problem:
    at = doc.at(tuple(int(part) if part.isdigit() else part for part in r.field.split(".")))
    return Problem(doc.file, at.line, at.col, r.field, r.what, r.hint)


def _field_path(loc: tuple, data: object) -> Path:
    """Pydantic's location without the union branches it appends (they are no keys of the file)."""
    path: list = []
    for part in loc:
        is_item = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if path and not is_item and not isinstance(data, dict):
            break
        path.append(part)
        data = data[part] if is_item else data.get(part) if isinstance(data, dict) else None
    return tuple(path)


def _repaired(data: dict, wrong: Iterable[Path], example: dict) -> dict:
    """The data with wrong leaves removed, so that defaults stand in and the cross-field rules can still
    run."""
    fixed = copy.deepcopy(data)
    for path in wrong:
        # A list with a wrong item is left out whole: the places of its other items must not move.
        path = path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))]
        parent = fixed
        for part in path[:-1]:
            parent = parent.get(part) if isinstance(parent, dict) else None
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return {**example, **fixed}
