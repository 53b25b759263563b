"""Sets fields in the text of a spec, keeping its comments and layout.

Only the span of the value that changes is replaced; the rest of the file stays byte for byte.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass

import yaml
from pydantic import BaseModel

from kgen.errors import UsageError
from kgen.spec.families import FAMILIES
from kgen.spec.fields import field_paths, is_text, model_at
from kgen.spec.positions import parse

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class Assignment:
    """`pipeline.stages=3`: where, and the value as YAML that may stand anywhere, also inside `{}`."""

    path: tuple[str, ...]
    value: str

    @property
    def field(self) -> str:
        return ".".join(self.path)


def set_values(text: str, assignments: list[str], file: str = "spec.yaml") -> str:
    """`text` with each `field.path=value` set, in order; the result is not validated.

    A missing key is inserted where the model has it, with the mappings above it. Raises UsageError for an
    assignment that is malformed or names an unknown field, SpecError for text that is no YAML mapping.
    """
    parse(text, file)
    root = _root(text)
    family = FAMILIES.get(_scalar(root, "kernel"))
    if family is None:
        raise UsageError(f"{file}: no known `kernel:`, so its fields are unknown")
    # `arch` may be what is set, or wrong and about to be refused: then the fields of the newest are as good as any.
    model = family.variants.get(_scalar(root, "arch"), family.newest).model
    for assignment in [_parsed(a, model) for a in assignments]:
        text = _set(text, assignment, model)
    return text


# --- the assignment
# --------------------------------------------------------------------------------------------


def _parsed(assignment: str, model: type[BaseModel]) -> Assignment:
    name, equals, value = (part.strip() for part in assignment.partition("="))
    if not equals or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
        raise UsageError(f"{assignment!r} is not FIELD=VALUE, as in pipeline.stages=3")
    path = tuple(name.split("."))
    if name not in field_paths(model):
        raise UsageError(f"{assignment!r}: unknown field{_suggestion(name, model)}")
    return Assignment(path, _as_yaml(assignment, path, value, model))


def _suggestion(name: str, model: type[BaseModel]) -> str:
    known = field_paths(model)
    leaf, leaves = name.rpartition(".")[2], {k.rpartition(".")[2] for k in known}
    near = difflib.get_close_matches(name, known, n=1) if "." in name else []
    for word in [] if near else difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.7):
        near = [k for k in known if k.rpartition(".")[2] == word]
    if near:
        return f" (did you mean {' or '.join(near)}?)"
    return f" (known: {', '.join(k for k in known if '.' not in k)}, and the fields below them)"


def _as_yaml(assignment: str, path: tuple[str, ...], value: str, model: type[BaseModel]) -> str:
    """The value in a form that is safe in block and flow context alike."""
    if is_text(model, path):
        return (
            value
            if _PLAIN.fullmatch(value) and isinstance(yaml.safe_load(value), str)
            else json.dumps(value, ensure_ascii=False)
        )
    if not value:
        raise UsageError(f"{assignment!r}: no value after =")
    try:
        data = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        raise UsageError(f"{assignment!r}: {value!r} is no YAML value") from None
    if isinstance(data, (dict, list)) and value[0] not in "{[":
        raise UsageError(f"{assignment!r}: {value!r} is no YAML value (write a mapping in braces)")
    if isinstance(data, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(data, ensure_ascii=False)
    return (
        yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**6).split("\n...")[0].strip()
    )


# --- the text
# --------------------------------------------------------------------------------------------------


def _set(text: str, assignment: Assignment, model: type[BaseModel]) -> str:
    node, path = _root(text), assignment.path
    for depth, key in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            where = ".".join(path[:depth])
            raise UsageError(
                f"{assignment.field}: {where} is no mapping in this spec; set {where}={{...}} as a whole"
            )
        pair = next(((k, v) for k, v in node.value if k.value == key), None)
        value = assignment.value
        for missing in reversed(path[depth + 1 :]):
            value = f"{{{missing}: {value}}}"
        if pair is None:
            return _insert(text, node, key, value, list(model_at(model, path[:depth]).model_fields))
        if depth == len(path) - 1 or _is_empty(pair[1]):
            return _replace(text, *pair, value)
        node = pair[1]
    raise AssertionError("a path has at least one part")


def _replace(text: str, key: yaml.Node, value: yaml.Node, new: str) -> str:
    start, end = value.start_mark.index, _end(text, value)
    if start < key.end_mark.index:
        raise UsageError(f"{key.value}: its value is an alias (*name); change it in the file by hand")
    # A mapping in block style starts on a line of its own; what replaces it follows its key.
    after_colon = text.index(":", key.end_mark.index) + 1
    block = isinstance(value, yaml.CollectionNode) and not value.flow_style
    if block or start == end:
        return f"{text[:after_colon]} {new}{text[max(end, after_colon) :]}"
    return text[:start] + new + text[end:]


def _insert(text: str, parent: yaml.MappingNode, key: str, value: str, order: list[str]) -> str:
    """Adds `key: value` after the last key that precedes it in the model."""
    before = [pair for pair in parent.value if pair[0].value in order[: order.index(key)]]
    entry = f"{key}: {value}"
    if parent.flow_style:
        if not parent.value:
            at = parent.start_mark.index + 1
            return text[:at] + entry + text[at:]
        if before:
            at = _end(text, before[-1][1])
            return f"{text[:at]}, {entry}{text[at:]}"
        at = parent.value[0][0].start_mark.index
        return f"{text[:at]}{entry}, {text[at:]}"
    first = parent.value[0][0].start_mark
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = " " * first.column
    if not before:
        return f"{text[: first.index]}{entry}{newline}{indent}{text[first.index :]}"
    line_end = text.find("\n", _end(text, before[-1][1]))
    if line_end < 0:
        return f"{text}{newline}{indent}{entry}{newline}"
    return f"{text[: line_end + 1]}{indent}{entry}{newline}{text[line_end + 1 :]}"


def _end(text: str, node: yaml.Node) -> int:
    """Where the node's own text ends. PyYAML ends a block where the next token starts, past comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(_end(text, n) for n in (last if isinstance(last, tuple) else (last,)))
    end = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return node.start_mark.index + len(text[node.start_mark.index : end].rstrip())
    return end


def _root(text: str) -> yaml.Node:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _scalar(node: yaml.MappingNode, key: str) -> object:
    return next((v.value for k, v in node.value if k.value == key and isinstance(v, yaml.ScalarNode)), None)
