"""YAML text with the place of every key and value.

PyYAML's loader forgets positions, so the node graph is composed first and turned into plain data here. Duplicate
keys, which YAML forbids and PyYAML lets pass, are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from kgen.errors import Problem, SpecError

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Position:
    """A 1-based line and column."""

    line: int
    col: int


@dataclass
class Document:
    """Parsed YAML: `data` is plain Python, `keys` and `values` map a path to where it stands."""

    file: str
    text: str
    data: object = None
    keys: dict[Path, Position] = field(default_factory=dict)
    values: dict[Path, Position] = field(default_factory=dict)

    def at(self, path: Path, *, key: bool = False) -> Position:
        """The position of `path`, or of its nearest ancestor that stands in the file."""
        table = self.keys if key else self.values
        if path in table:
            return table[path]
        while path:
            path = path[:-1]
            if path in self.keys:
                return self.keys[path]
        return Position(1, 1)


def _mark(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def parse(text: str, file: str) -> Document:
    """Compose `text`; raises SpecError for YAML that does not parse, has no mapping on top, or repeats a key."""
    doc = Document(file, text)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        where = _mark(e.problem_mark or e.context_mark)
        what = " ".join(filter(None, (e.context, e.problem)))
        raise SpecError([Problem(file, where.line, where.col, "", f"YAML syntax: {what}")]) from None
    except yaml.YAMLError as e:
        raise SpecError([Problem(file, 1, 1, "", f"YAML syntax: {e}")]) from None
    if not isinstance(node, yaml.MappingNode):
        raise SpecError([Problem(file, 1, 1, "", "a spec is a mapping of fields", "start with `kernel: gemm`")])
    problems: list[Problem] = []
    doc.data = _construct(node, (), doc, problems)
    if problems:
        raise SpecError(problems)
    return doc


def _construct(node: yaml.Node, path: Path, doc: Document, problems: list[Problem]):
    doc.values[path] = _mark(node.start_mark)
    if isinstance(node, yaml.MappingNode):
        out: dict = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            here = _mark(key_node.start_mark)
            sub = (*path, key)
            if sub in doc.keys:
                first = doc.keys[sub].line
                dotted = ".".join(map(str, sub))
                problems.append(
                    Problem(doc.file, here.line, here.col, dotted, f"given twice, first on line {first}", "keep one")
                )
                continue
            doc.keys[sub] = here
            out[key] = _construct(value_node, sub, doc, problems)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_construct(n, (*path, i), doc, problems) for i, n in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node)
