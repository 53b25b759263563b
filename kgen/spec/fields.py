"""Looks into the spec models: which fields there are, and what numbers they take."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Bounds:
    """The whole numbers a field takes: from `low` to `high`, both legal, in steps of `step`."""

    low: float
    high: float
    step: int

    def nearest(self, value: int) -> list[int]:
        """The legal values around `value`, one or two."""
        around = (math.floor(value / self.step) * self.step, math.ceil(value / self.step) * self.step)
        return sorted({int(min(max(v, self.low), self.high)) for v in around})


def field_paths(model: type[BaseModel]) -> list[str]:
    """Every field as a dotted path, sections before what they hold."""
    found = []
    for name, info in model.model_fields.items():
        found.append(name)
        if inner := _model_in(info.annotation):
            found += [f"{name}.{path}" for path in field_paths(inner)]
    return found


def model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model of the mapping at `path`; None where there is none."""
    items = None  # of the list that the path has come to
    for part in path:
        if isinstance(part, int):
            model = items
        else:
            info = model.model_fields.get(part)
            items = _items_of(info.annotation) if info else None
            model = items or (_model_in(info.annotation) if info else None)
        if model is None:
            return None
    return model


def is_text(model: type[BaseModel], path: Path) -> bool:
    """Whether the field takes any text, as opposed to one of a few words or a number."""
    owner = model_at(model, path[:-1])
    return owner is not None and owner.model_fields[path[-1]].annotation is str


def bounds(model: type[BaseModel], path: Path) -> Bounds:
    """What numbers the field at `path` takes; everything where it says nothing."""
    owner = model_at(model, path[:-1])
    info = owner.model_fields.get(path[-1]) if owner else None
    low, high, step = -math.inf, math.inf, 1
    for limit in _metadata(info) if info else ():
        low = getattr(limit, "ge", low)
        high = getattr(limit, "lt", high + 1) - 1 if hasattr(limit, "lt") else getattr(limit, "le", high)
        step = getattr(limit, "multiple_of", step)
    return Bounds(math.ceil(low / step) * step if low > -math.inf else low, high, step)


def _metadata(info: FieldInfo):
    yield from info.metadata
    for member in _members(info.annotation):
        for extra in getattr(member, "__metadata__", ()):
            yield from extra.metadata if isinstance(extra, FieldInfo) else (extra,)


def _members(annotation) -> tuple:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _items_of(annotation) -> type[BaseModel] | None:
    """The model of a list's items."""
    return _model_in(typing.get_args(annotation)[0]) if typing.get_origin(annotation) is tuple else None


def _model_in(annotation) -> type[BaseModel] | None:
    return next((a for a in _members(annotation) if isinstance(a, type) and issubclass(a, BaseModel)), None)
