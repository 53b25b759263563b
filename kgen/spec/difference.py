"""How two specs differ, field by field; comments, layout and order do not count."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

# What a spec calls itself and the shape its own benchmark takes: no difference in the kernel.
DESCRIPTION = ("name", "about", "problem")


@dataclass(frozen=True)
class Change:
    """A field, by its dotted path, and its value on both sides; None where it is not given."""

    field: str
    before: object
    after: object

    def to_json(self) -> dict:
        return {"field": self.field, "before": self.before, "after": self.after}

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.field}: {self.after}"
        return f"{self.field}: {self.before} → {'none' if self.after is None else self.after}"


def differences(before: str, after: str, ignore: tuple[str, ...] = DESCRIPTION) -> list[Change]:
    """The fields in which two valid spec texts differ, as they are written, in order of appearance."""
    left, right = _leaves(yaml.safe_load(before)), _leaves(yaml.safe_load(after))
    fields = [f for f in dict.fromkeys([*right, *left]) if f.partition(".")[0] not in ignore]
    return [Change(f, left.get(f), right.get(f)) for f in fields if left.get(f) != right.get(f)]


def _leaves(data: dict, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            found |= _leaves(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
