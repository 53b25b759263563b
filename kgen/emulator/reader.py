"""Walking over tokens, with messages that quote the line; literals; sizes of types. PTX ISA §4.5, §5.2."""

from __future__ import annotations

import re
import struct

from kgen.emulator.lexer import Token, tokenize
from kgen.emulator.operands import FloatImm
from kgen.errors import EmulatorError

__all__ = ["Reader", "floating", "integer", "type_size"]

_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def type_size(name: str) -> int:
    """Bytes of a PTX type ("b32", "f16x2"). 1 for a predicate."""
    if name == "pred":
        return 1
    if name in ("f16x2", "bf16x2"):
        return 4
    if name == "f32x2":
        return 8
    digits = re.sub(r"^(bf|tf|[bsuf])", "", name)
    if digits not in _SIZES:
        raise EmulatorError(f"unknown PTX type .{name}")
    return _SIZES[digits]


class Reader:
    """A position in the tokens of a PTX text; `loc` is the source line that the latest .loc named."""

    def __init__(self, text: str):
        self.text, self.tokens, self.at = text, tokenize(text), 0
        self.files: dict[str, str] = {}
        self.loc = ""

    def peek(self, ahead: int = 0) -> Token | None:
        i = self.at + ahead
        return self.tokens[i] if i < len(self.tokens) else None

    def next(self) -> Token:
        token = self.peek()
        if token is None:
            raise EmulatorError("the PTX ends in the middle of a statement")
        self.at += 1
        return token

    def take(self, *kinds: str) -> Token | None:
        token = self.peek()
        if token is not None and (token.kind in kinds or (token.kind == "dot" and token.text in kinds)):
            self.at += 1
            return token
        return None

    def expect(self, kind: str) -> Token:
        token = self.next()
        if token.kind != kind:
            raise self.error(token, f"expected {kind!r}, found {token.text!r}")
        return token

    def error(self, token: Token, what: str) -> EmulatorError:
        start = self.text.rfind("\n", 0, token.start) + 1
        end = self.text.find("\n", token.start)
        quoted = self.text[start : end if end >= 0 else None].strip()
        return EmulatorError(f"PTX line {token.line}: {what}\n  {quoted}")

    def skip_to(self, kind: str) -> None:
        while self.next().kind != kind:
            pass

    def debug(self) -> bool:
        """Swallows one .loc, .file or .section; True if there was one."""
        token = self.peek()
        if token.kind == "loc":
            _, file, line, *rest = token.text.replace(",", " ").split()
            self.loc = f"{self.files.get(file, file)}:{line}"
            if "inlined_at" in rest:
                file, line = rest[rest.index("inlined_at") + 1 :][:2]
                self.loc += f" inlined at {self.files.get(file, file)}:{line}"
        elif token.kind == "file":
            match = re.match(r'\.file\s+(\d+)\s+"([^"]*)"', token.text)
            if match:
                self.files[match[1]] = match[2].rsplit("/", 1)[-1]
        elif token.kind == "dot" and token.text.startswith(".section"):
            while self.peek().kind != "{":
                self.at += 1
            depth = 0
            while True:
                depth += {"{": 1, "}": -1}.get(self.next().kind, 0)
                if depth == 0:
                    return True
        else:
            return False
        self.at += 1
        return True


def integer(word: str) -> int:
    """The value of an integer literal."""
    word = word.rstrip("U").lower()
    if word.startswith("0x"):
        return int(word, 16)
    if word.startswith("0b"):
        return int(word, 2)
    return int(word, 8) if len(word) > 1 and word.startswith("0") else int(word)


def floating(word: str) -> FloatImm:
    """A floating literal; 0f and 0d give the exact bits."""
    if word[:2].lower() == "0f":
        bits = int(word[2:], 16)
        return FloatImm(struct.unpack("<f", struct.pack("<I", bits))[0], bits, 32)
    if word[:2].lower() == "0d":
        bits = int(word[2:], 16)
        return FloatImm(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, 64)
    value = float(word)
    return FloatImm(value, struct.unpack("<Q", struct.pack("<d", value))[0], 64)
