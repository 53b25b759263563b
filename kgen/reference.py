"""The spec reference in Markdown, from the pydantic models, so that it cannot fall behind them."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kgen.spec.families import FAMILIES
from kgen.spec.gemm.ops import OPERATIONS, REDUCTIONS

EPILOGUE = """A list, worked through for each element `x` of the product before it is rounded to D's type. Arguments
become members of the kernel's argument struct. A step of one's own says what `x` becomes, and declares what it reads:

```yaml
epilogue:
  ops:
    - {op: bias, type: bf16}
    - op: expr
      name: leaky
      scalars: [slope]          # args.leaky_slope
      code: "x > 0 ? x : slope * x"
    - row_max_abs
```

Reductions end the list. They accumulate into vectors of fp32 that the caller clears, by atomics: the order of
additions, and so the last bits of a sum, differ from run to run."""


def _steps():
    yield "| step | x becomes | arguments | meaning |"
    yield "|---|---|---|---|"
    for name, o in OPERATIONS.items():
        arguments = ", ".join(f"`{a}` (per {b})" if b != "scalar" else f"`{a}` (scalar)" for a, b in o.arguments)
        yield f"| `{name}` | `{o.code}` | {arguments.replace('per matrix', 'per element')} | {o.about} |"
    for name, r in REDUCTIONS.items():
        yield f"| `{name}` | | `{name}` (per {r.along}) | {r.about} |"


def spec_reference() -> str:
    """Every field of every kernel family: type, default, limits and meaning."""
    parts = [
        "# Spec reference",
        "Generated from the models by `kgen schema --markdown`. `kgen schema` prints the same as JSON Schema, by which "
        "an editor completes and checks a spec.",
    ]
    for family in FAMILIES.values():
        parts.append(f"## `kernel: {family.name}`\n\n{family.summary}.")
        for v in family.variants.values():
            table = ["| field | takes | default | meaning |", "|---|---|---|---|", *_rows(v.model)]
            parts.append(f"### `{family.name}` on `arch: {v.arch}`\n\n" + "\n".join(table))
            rules = "\n".join(f"- {rule}" for rule in v.rules.descriptions())
            parts.append(f"#### What goes together on {v.arch}\n\n{rules}")
    parts.append("## Steps of `epilogue.ops`\n\n" + EPILOGUE + "\n\n" + "\n".join(_steps()))
    return "\n\n".join(parts) + "\n"


def _rows(model: type[BaseModel], prefix: str = ""):
    for name, field in model.model_fields.items():
        nested = _nested(field)
        if get_origin(field.annotation) is tuple:
            item = next((a for a in get_args(field.annotation) if a is not Ellipsis), None)
            if nested is None:
                yield f"| `{prefix}{name}` | list of names | empty | {field.description or ''} |"
            else:
                yield f"| **`{prefix}{name}`** | list | empty | {field.description or ''}. {_sentence(item.__doc__)} |"
                yield from _rows(item, f"{prefix}{name}[].")
        elif nested is not None:
            yield f"| **`{prefix}{name}`** | mapping | {_default(field, nested)} | {_sentence(nested.__doc__)} |"
            yield from _rows(nested, f"{prefix}{name}.")
        else:
            yield f"| `{prefix}{name}` | {_takes(field)} | {_default(field)} | {field.description or ''} |"


def _nested(field: FieldInfo) -> type[BaseModel] | None:
    candidates = [field.annotation, *get_args(field.annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _takes(field: FieldInfo) -> str:
    limits = {type(m).__name__: m for m in field.metadata}
    low = next((f"≥ {m.ge}" for n, m in limits.items() if n == "Ge"), "")
    high = next((f"≤ {m.le}" for n, m in limits.items() if n == "Le"), "")
    step = next((f"multiple of {m.multiple_of}" for n, m in limits.items() if n == "MultipleOf"), "")
    range_ = ", ".join(filter(None, [low, high, step]))
    return " ".join(filter(None, [", ".join(_options(field.annotation)), range_]))


def _options(annotation) -> list[str]:
    if get_origin(annotation) is Literal:
        return [f"`{v}`" for v in get_args(annotation)]
    if get_args(annotation):
        return [o for a in get_args(annotation) if a is not type(None) for o in _options(a)]
    words = {int: "integer", bool: "`true`, `false`"}
    return [words.get(annotation, "text")] if isinstance(annotation, type) else []


def _default(field: FieldInfo, nested: type[BaseModel] | None = None) -> str:
    if field.is_required():
        return "required"
    if nested is not None:
        return "absent" if field.default is None else ""
    if field.default is None:
        return "absent"
    return f"`{field.default}`" if field.default != "" else "empty"


def _sentence(doc: str | None) -> str:
    return (doc or "").strip().split("\n")[0]
