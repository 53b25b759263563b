"""A rendered kernel as a tree of statements: as much of C++ as the templates write."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Branch:
    test: str
    body: tuple
    otherwise: tuple = ()


@dataclass(frozen=True)
class ForLoop:
    header: str
    body: tuple


def plain(source: str) -> str:
    """Without comments and preprocessor lines."""
    return re.sub(r"^#[^\n]*$", "", re.sub(r"//[^\n]*", "", source), flags=re.M)


def function_body(source: str, name: str) -> str:
    """The text between the braces of a device function or the kernel."""
    text = plain(source)
    start = re.search(rf"(?:DEVICE|__launch_bounds__)[^;{{]*\b{name}\([^{{;]*\)\s*\{{", text)
    assert start, name
    return text[start.end() : _closing(text, start.end() - 1)]


def _closing(text: str, at: int) -> int:
    """Where the bracket that opens at `at` closes."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    for i in range(at, len(text)):
        depth += {text[at]: 1, pairs[text[at]]: -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise AssertionError(text[at : at + 80])


def statements(text: str) -> tuple:
    """Statements (strings with single spaces), branches and loops of a function body."""
    found, at = [], 0
    while text[at:].strip():
        one, at = _statement(text, at)
        found += one
    return tuple(found)


def _statement(text: str, at: int) -> tuple[tuple, int]:
    at += len(text[at:]) - len(text[at:].lstrip())
    if text[at] == "{":
        end = _closing(text, at)
        return statements(text[at + 1 : end]), end + 1
    if once := re.match(r"do\b", text[at:]):
        return _do(text, at + once.end())
    word = re.match(r"(if|for)\s*\(", text[at:])
    if not word:
        return _simple(text, at)
    end = _closing(text, at + word.end() - 1)
    head = " ".join(text[at + word.end() : end].split())
    body, at = _statement(text, end + 1)
    if word[1] == "for":
        return (ForLoop(head, body),), at
    otherwise = ()
    if more := re.match(r"\s*else\b", text[at:]):
        otherwise, at = _statement(text, at + more.end())
    return (Branch(head, body, otherwise),), at


def _do(text: str, at: int) -> tuple[tuple, int]:
    """A loop that asks at its end; its header says so."""
    body, at = _statement(text, at)
    word = re.match(r"\s*while\s*\(", text[at:])
    end = _closing(text, at + word.end() - 1)
    head = " ".join(text[at + word.end() : end].split())
    return (ForLoop(f"do while {head}", body),), text.index(";", end) + 1


def _simple(text: str, at: int) -> tuple[tuple, int]:
    start = at
    while text[at] != ";":
        at = _closing(text, at) + 1 if text[at] in "({" else at + 1
    return (" ".join(text[start:at].split()),), at + 1


def constants(source: str) -> dict[str, int]:
    """The file's `constexpr int`s."""
    text = plain(source)
    sizes = dict(re.findall(r"using (Input|Output) = (\w+);", text))
    bytes_of = {"float": 4, "uint8_t": 1, "__nv_fp8_e4m3": 1, "__nv_fp8_e5m2": 1}
    values = {f"sizeof({name})": bytes_of.get(type_, 2) for name, type_ in sizes.items()} | {"sizeof(uint64_t)": 8}
    for name, expression in re.findall(r"constexpr int (\w+) = ([^;]+);", text):
        values[name] = evaluate(expression, values)
    return values


def evaluate(expression: str, values: dict[str, int]) -> int:
    """An integer expression over constants, with C's division of positive numbers."""
    known = re.sub(r"sizeof\(\w+\)|\b[A-Za-z_]\w*", lambda m: str(values[m[0]]), expression)
    assert re.fullmatch(r"[\dxb+*/<|()\s-]+", known), expression
    return eval(known.replace("/", "//"))
