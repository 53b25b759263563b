"""Words for what pydantic found wrong: what it is, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic import BaseModel

from kgen.errors import Problem
from kgen.spec.fields import bounds, model_at
from kgen.spec.positions import Document, Path

_RANGE = ("greater_than_equal", "less_than_equal", "less_than", "greater_than", "multiple_of")
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
}


def nearest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`did you mean X?`, or nothing where nothing is near."""
    match = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"did you mean {match[0]}?" if match else ""


def meant_field(path: Path, model: type[BaseModel]) -> Path | None:
    """The known field that an unknown one is a misspelling of; None for a known field and a far word."""
    owner = model_at(model, path[:-1])
    if owner is None or not path or path[-1] in owner.model_fields:
        return None
    match = difflib.get_close_matches(str(path[-1]), list(owner.model_fields), n=1, cutoff=0.5)
    return (*path[:-1], match[0]) if match else None


def explain(errors: list[dict], path: Path, model: type[BaseModel], doc: Document) -> Problem:
    """One problem out of the errors of one field."""
    kinds = [e["type"] for e in errors]
    at = doc.at(path, key="extra_forbidden" in kinds)
    what, hint = _words(errors, path, model)
    # A key may be anything; what would not be seen is shown quoted.
    names = [str(part) if str(part).strip() and str(part).isprintable() else repr(part) for part in path]
    return Problem(doc.file, at.line, at.col, ".".join(names), what, hint)


def _words(errors: list[dict], path: Path, model: type[BaseModel]) -> tuple[str, str]:
    # Of a union's members the one whose type fits is meant; the others only say that they are not it.
    error = next((e for e in errors if e["type"] in _RANGE), errors[0])
    kind, value = error["type"], error.get("input")
    shown = _shown(value)
    if kind in _RANGE:
        return _out_of_range(value, path, model)
    if len(errors) > 1:
        wanted = [w for e in errors for w in _wanted(e)]
        if len(wanted) == 2:
            return f"{shown} is neither {wanted[0]} nor {wanted[1]}", ""
        return f"{shown} is none of {', '.join(wanted)}", ""
    if kind == "extra_forbidden":
        owner = model_at(model, path[:-1])
        known = list(owner.model_fields) if owner else []
        return "unknown field", nearest(str(path[-1]), known) or "known here: " + ", ".join(known)
    if kind == "missing":
        return "missing", "every spec must give it"
    if kind == "literal_error":
        options = [o.strip("'") for o in _wanted(error)]
        if len(options) == 1:
            return f"{shown} is not {options[0]}", "nothing else is possible here"
        choice = nearest(str(value), options) or f"choose one of {', '.join(options)}"
        return f"{shown} is none of {', '.join(options)}", choice
    if kind == "value_error":
        return f"{shown} {error['ctx']['error']}", ""
    if kind == "model_type":
        return f"{shown} is not a mapping", "write its fields indented below it"
    return f"{shown} is not {_wanted(error)[0]}", ""


def _out_of_range(value: int, path: Path, model: type[BaseModel]) -> tuple[str, str]:
    """Beyond a limit before between two steps: 300 is above 256, whether or not it is a multiple of 8."""
    legal = bounds(model, path)
    near = " or ".join(map(str, legal.nearest(value)))
    if value > legal.high:
        return f"{value} is above {legal.high}", f"nearest: {near}"
    if value < legal.low:
        return f"{value} is below {legal.low}", f"nearest: {near}"
    return f"{value} is not a multiple of {legal.step}", f"nearest: {near}"


def _wanted(error: dict) -> list[str]:
    if error["type"] == "literal_error":
        return error["ctx"]["expected"].replace(" or ", ", ").split(", ")
    return [
        _KINDS.get(error["type"]) or error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    ]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
