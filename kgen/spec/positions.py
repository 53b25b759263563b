"""YAML text with the place of every key and value.

PyYAML's loader forgets positions, so the node graph is composed first and turned into plain data here.
Duplicate keys, which YAML forbids and PyYAML lets pass, are reported.
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
            if path and isinstance(path[-1], int) and path in self.values:  # an item of a list has no key
                return self.values[path]
        return Position(1, 1)


def _mark(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def parse(text: str, file: str) -> Document:
    """Compose `text`; raises SpecError for YAML that does not parse, has no mapping on top, or repeats a
    key."""
    doc = Document(file, text)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        where = _mark(e.problem_mark or e.context_mark)
        what = " ".join(filter(None, (e.context, e.problem)))
        raise SpecError([Problem(file, where.line, where.col, "", f"YAML syntax: {what}")]) from None
    except yaml.reader.ReaderError as e:
        before = text[: e.position]
        line, col = before.count("\n") + 1, e.position - before.rfind("\n")
        what = f"YAML syntax: character {chr(e.character)!r} is not allowed"
        raise SpecError([Problem(file, line, col, "", what)]) from None
    except RecursionError:
        raise SpecError([Problem(file, 1, 1, "", "YAML syntax: nested too deeply")]) from None
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(
            [Problem(file, 1, 1, "", "a spec is a mapping of fields", "start with `kernel: gemm`")]
        )
    problems: list[Problem] = []
    doc.data = _construct(node, (), doc, problems)
    if problems:
        raise SpecError(problems)
    return doc


def _construct(
    node: yaml.Node, path: Path, doc: Document, problems: list[Problem], above: tuple[yaml.Node, ...] = ()
):
    here = doc.values[path] = _mark(node.start_mark)
    dotted = ".".join(map(str, path))

    def report(at: Position, field: str, what: str, hint: str = "") -> None:
        problems.append(Problem(doc.file, at.line, at.col, field, what, hint))

    if node in above:
        report(here, dotted, "an alias to what contains it", "write the value out")
        return None
    above = (*above, node)
    if isinstance(node, yaml.MappingNode):
        out: dict = {}
        for key_node, value_node in node.value:
            place = _mark(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                report(place, dotted, "a key is a list or a mapping", "a field's name is a word")
                continue
            key = key_node.value
            sub = (*path, key)
            if sub in doc.keys:
                field = ".".join(map(str, sub))
                report(place, field, f"given twice, first on line {doc.keys[sub].line}", "keep one")
                continue
            doc.keys[sub] = place
            out[key] = _construct(value_node, sub, doc, problems, above)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_construct(n, (*path, i), doc, problems, above) for i, n in enumerate(node.value)]
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError):  # a tag that is not YAML's own, or a date or number that is none
        report(here, dotted, f"{node.value[:60]!r} is no plain value", "write it without a tag, or in quotes")
        return None
