"""PTX text to tokens. PTX ISA §4 (lexical elements)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from kgen.errors import EmulatorError

__all__ = ["Token", "tokenize"]

# Lines without a semicolon of their own: .loc and .file end at the end of the line.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<loc>\.loc\b[^\n]*)
    | (?P<file>\.file\b[^\n]*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?(?![\w.]))
    | (?P<name>[%A-Za-z_$][\w$]*(?:\.[\w]+(?:::[\w]+)*|::\w+)*)
    | (?P<dot>\.[\w]+(?:::[\w]+)*(?:\.[\w]+(?:::[\w]+)*)*)
    | (?P<punct><<|>>|[][{}(),;:+\-*/|!@<>=&~^.?])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is loc, file, string, float, int, name, dot (a directive) or the punctuation itself."""

    kind: str
    text: str
    start: int
    end: int
    line: int


def tokenize(text: str) -> list[Token]:
    """Every token of `text`. EmulatorError with the line at a character that starts none."""
    newlines = [m.start() for m in re.finditer("\n", text)]
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = bisect_right(newlines, at) + 1
            raise EmulatorError(f"PTX line {line}: cannot read {text[at : at + 20]!r}")
        kind = match.lastgroup
        if kind != "space":
            word = match.group()
            tokens.append(
                Token(word if kind == "punct" else kind, word, at, match.end(), bisect_right(newlines, at) + 1)
            )
        at = match.end()
    return tokens
