"""Loading a spec: YAML text -> validated, frozen Spec, or every mistake at once with its place."""

from __future__ import annotations

import copy
import difflib
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import BaseModel, ValidationError

from kgen.errors import PlanError, Problem, Refusal, SpecError, UsageError
from kgen.spec.families import FAMILIES
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
        raise UsageError(f"{path}: no such file (`kgen list` shows the presets; `kgen new` scaffolds one)") from None
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: cannot be read: {e}") from None
    return parse_spec(text, str(path))


def parse_spec(text: str, file: str = "spec.yaml") -> LoadedSpec:
    """Validate spec text; `file` is only used in messages."""
    doc = parse(text, file)
    data = doc.data
    family = FAMILIES.get(data.get("kernel")) if isinstance(data.get("kernel"), str) else None
    if family is None:
        at = doc.at(("kernel",))
        given = f"unknown kernel family {data['kernel']!r}" if "kernel" in data else "missing"
        hint = _nearest(str(data.get("kernel", "")), FAMILIES) or "one of: " + ", ".join(FAMILIES)
        raise SpecError([Problem(file, at.line, at.col, "kernel", given, hint)])
    problems, wrong = [], []
    try:
        spec = family.model.model_validate(data)
    except ValidationError as e:
        for error in e.errors():
            path = _field_path(error["loc"], data)
            problems.append(_explain(error, path, family.model, doc))
            wrong.append(path)
        spec = family.model.model_validate(_repaired(data, wrong, family.model.EXAMPLE))
    refusals = family.rules.broken(spec, {".".join(map(str, p)) for p in wrong})
    problems += [_locate(r, doc) for r in refusals]
    if problems:
        raise SpecError(problems)
    return LoadedSpec(spec, doc)


def _locate(r: Refusal, doc: Document) -> Problem:
    at = doc.at(tuple(r.field.split(".")))
    return Problem(doc.file, at.line, at.col, r.field, r.what, r.hint)


def _field_path(loc: tuple, data: object) -> Path:
    """Pydantic's location without the union branches it appends (they are no keys of the file)."""
    path: list = []
    for part in loc:
        is_last_known = isinstance(data, dict) and part in data
        if not is_last_known and path and not isinstance(data, dict):
            break
        path.append(part)
        data = data.get(part) if isinstance(data, dict) else None
    return tuple(path)


def _repaired(data: dict, wrong: list[Path], example: dict) -> dict:
    """The data with wrong leaves removed, so that defaults stand in and the cross-field rules can still run."""
    fixed = copy.deepcopy(data)
    for path in wrong:
        parent = fixed
        for part in path[:-1]:
            parent = parent.get(part) if isinstance(parent, dict) else None
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return {**example, **fixed}


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    for part in path:
        field = model.model_fields.get(part)
        if field is None:
            return None
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())]
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if model is None:
            return None
    return model


def _nearest(word: str, known) -> str:
    match = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {match[0]}?" if match else ""


def _explain(error: dict, path: Path, model: type[BaseModel], doc: Document) -> Problem:
    dotted = ".".join(map(str, path))
    kind, value, ctx = error["type"], error.get("input"), error.get("ctx", {})
    at_key = kind == "extra_forbidden"
    at = doc.at(path, key=at_key)
    owner = _model_at(model, path[:-1])
    known = list(owner.model_fields) if owner else []
    if kind == "extra_forbidden":
        what, hint = "unknown field", _nearest(str(path[-1]), known) or "known here: " + ", ".join(known)
    elif kind == "missing":
        what, hint = "missing", "every spec must give it"
    elif kind == "literal_error":
        options = ctx["expected"].replace("'", "").replace(" or ", ", ")
        what = f"{value!r} is none of {options}"
        hint = _nearest(str(value), options.split(", ")) or f"choose one of {options}"
    elif kind == "value_error":
        what, hint = str(ctx["error"]), ""
    elif kind == "multiple_of":
        step = ctx["multiple_of"]
        low, high = value // step * step, -(-value // step) * step
        what, hint = f"{value} is not a multiple of {step}", f"nearest: {low or high} or {high}"
    elif kind in ("greater_than_equal", "less_than_equal", "less_than", "greater_than"):
        sign = {"greater_than_equal": "≥", "less_than_equal": "≤", "less_than": "<", "greater_than": ">"}[kind]
        limit = next(iter(ctx.values()))
        what, hint = f"{value} is out of range", f"must be {sign} {limit}"
    elif kind == "model_type":
        what, hint = f"{value!r} is not a mapping", "write its fields indented below it"
    else:
        wanted = error["msg"].removeprefix("Input should be ")
        what, hint = f"{value!r} should be {wanted}", ""
    return Problem(doc.file, at.line, at.col, dotted, what, hint)
