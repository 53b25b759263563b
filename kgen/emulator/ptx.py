"""PTX text to a Module: nested scopes flattened, labels turned into indices. PTX ISA §4-§5, §10, §11.

Local registers, variables and labels of a nested `{ }` scope get the scope's number in their name, because
inline assembly repeats the same names in sibling scopes.
"""

from __future__ import annotations

import re
import struct

from kgen.emulator.lexer import Token
from kgen.emulator.operands import (
    Address,
    FloatImm,
    Function,
    Imm,
    Instruction,
    Label,
    Module,
    Pair,
    Reg,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kgen.emulator.reader import Reader, floating, integer, type_size
from kgen.errors import EmulatorError

__all__ = ["parse"]

_SPACES = {".reg", ".param", ".local", ".shared", ".global", ".const"}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_IGNORED_IN_BODY = {".pragma", ".noreturn"}


class _Scope:
    def __init__(self, parent: _Scope | None, number: int):
        self.parent, self.number = parent, number
        self.names: dict[str, object] = {}
        self.labels: dict[str, Label] = {}

    def unique(self, name: str) -> str:
        return name if self.number == 0 else f"{name}@{self.number}"

    def find(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def label(self, name: str):
        scope = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None


class _Unresolved:
    """A name that may be a label further down."""

    def __init__(self, name: str, scope: _Scope, line: int, offset: int = 0):
        self.name, self.scope, self.line, self.offset = name, scope, line, offset


def parse(text: str) -> Module:
    """The module in `text`. EmulatorError, with the line, for what is not PTX."""
    return _Parser(text).module()


class _Parser(Reader):
    # -- module level ------------------------------------------------------------------------------------
    def module(self) -> Module:
        # .file directives stand at the end of what nvcc writes, so read them first.
        for token in self.tokens:
            if token.kind == "file" and (match := re.match(r'\.file\s+(\d+)\s+"([^"]*)"', token.text)):
                self.files[match[1]] = match[2].rsplit("/", 1)[-1]
        module = Module()
        while (token := self.peek()) is not None:
            if self.debug():
                continue
            linkage = []
            while (token := self.peek()) and token.kind == "dot" and token.text in _LINKAGE:
                linkage.append(self.next().text)
            token = self.next()
            if token.text == ".version":
                module.version = self.next().text
            elif token.text == ".target":
                module.target = self.next().text
                while self.take(","):
                    self.next()
            elif token.text == ".address_size":
                self.next()
            elif token.text in (".entry", ".func"):
                function = self.function(token.text == ".entry", module)
                known = module.functions.get(function.name)
                if known is None or known.body is None:
                    module.functions[function.name] = function
            elif token.kind == "dot" and token.text.split(".")[1] in ("global", "const", "shared"):
                for v in self.variable(token, 0, None):
                    if v.name not in module.variables or module.variables[v.name].size is None:
                        module.variables[v.name] = v
            elif token.text == ".pragma":
                self.skip_to(";")
            elif token.kind != ";":
                raise self.error(token, f"unknown directive {token.text}")
        return module

    def function(self, entry: bool, module: Module) -> Function:
        results = []
        if not entry and self.peek().kind == "(":
            results = self.parameters()
        name = self.expect("name").text
        function = Function(name, entry, results=results)
        if self.peek().kind == "(":
            function.params = self.parameters()
        while (token := self.peek()).kind not in ("{", ";"):
            if self.debug():
                continue
            self.at += 1
            values = []
            while self.peek().kind in ("int", ","):
                word = self.next()
                if word.kind == "int":
                    values.append(integer(word.text))
            if token.text in _IGNORED_IN_BODY:
                self.take("string")
            function.directives[token.text.lstrip(".")] = tuple(values)
        if self.take(";"):
            return function
        function.body = []
        scope = _Scope(None, 0)
        for v in (*function.params, *function.results):
            scope.names[v.name] = Symbol(v.name)
            function.variables[v.name] = v
        self.scopes = 0
        self.expect("{")
        self.body(function, scope)
        self.resolve(function, module)
        return function

    def parameters(self) -> list[Variable]:
        self.expect("(")
        found = []
        while not self.take(")"):
            token = self.next()
            if token.kind == "dot":
                found += self.variable(token, 0, None, end=False)
            elif token.kind != ",":
                raise self.error(token, f"unexpected {token.text!r} among parameters")
        return found

    def variable(self, first: Token, number: int, scope: _Scope | None, end: bool = True) -> list[Variable]:
        """One declaration (all its names), after its first token, which names the space."""
        words = first.text.lstrip(".").split(".")
        align, kind, found, vector = None, None, [], 1
        while self.peek().kind in ("dot", "int"):
            token = self.next()
            if token.text == ".align":
                align = integer(self.next().text)
            elif token.kind == "dot":
                words += token.text.lstrip(".").split(".")
        space = words[0]
        rest = [w for w in words[1:] if w not in ("ptr", "global", "const", "shared", "local", "param")]
        if rest and re.fullmatch(r"v[248]", rest[0]):
            vector = int(rest.pop(0)[1:])
        kind = rest[0] if rest else "b64"
        while True:
            name = self.expect("name").text
            size = type_size(kind) * vector if kind not in ("texref", "samplerref", "surfref") else 8
            if self.take("<"):
                count = integer(self.expect("int").text)
                self.expect(">")
                for i in range(count):
                    found.append(Variable(f"{name}{i}", space, size, size, kind))
            else:
                while self.take("["):
                    n = self.take("int")
                    self.expect("]")
                    size = None if n is None or size is None else size * integer(n.text)
                unique = scope.unique(name) if scope is not None else name
                v = Variable(unique, space, align or min(type_size(kind) * vector, 16), size, kind)
                if self.take("="):
                    self.initialiser(v, type_size(kind))
                found.append(v)
                if scope is not None and space != "reg":
                    scope.names[name] = Symbol(unique)
            if not self.take(",") if end else True:
                break
        if end:
            self.expect(";")
        return found

    def initialiser(self, v: Variable, width: int) -> None:
        data = bytearray()
        while True:
            token = self.next()
            if token.kind in ("{", "}", ","):
                pass
            elif token.kind == "int" or token.kind == "-":
                value = -integer(self.next().text) if token.kind == "-" else integer(token.text)
                data += (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
            elif token.kind == "float":
                value = floating(token.text)
                data += value.bits.to_bytes(8, "little") if width == 8 else struct.pack("<f", value.value)
            elif token.kind == "name":
                name = token.text
                wrapped = name == "generic"
                if wrapped:
                    self.expect("(")
                    name = self.expect("name").text
                    self.expect(")")
                offset = integer(self.next().text) if self.take("+") else 0
                v.relocations.append((len(data), Symbol(name, offset)))
                data += bytes(width)
            else:
                raise self.error(token, f"initialiser holds {token.text!r}, which is not modelled")
            if self.peek().kind == ";":
                break
        v.init = bytes(data)
        if v.size is None:
            v.size = len(data)

    # -- bodies ------------------------------------------------------------------------------------------
    def body(self, function: Function, scope: _Scope) -> None:
        while True:
            token = self.peek()
            if token is None:
                raise EmulatorError(f"the PTX ends inside function {function.name}")
            if self.debug():
                continue
            if self.take("}"):
                return
            if self.take("{"):
                self.scopes += 1
                self.body(function, _Scope(scope, self.scopes))
            elif self.take(";"):
                pass
            elif token.kind == "dot":
                self.at += 1
                word = token.text.split(".")[1]
                if "." + word in _SPACES:
                    for v in self.variable(token, scope.number, scope):
                        if v.space == "reg":
                            scope.names[v.name.split("@")[0]] = Reg(_registered(scope, v.name), v.type)
                        else:
                            function.variables[v.name] = v
                elif token.text in _IGNORED_IN_BODY:
                    self.skip_to(";")
                else:
                    raise self.error(token, f"unknown directive {token.text}")
            elif token.kind == "name" and self.peek(1) and self.peek(1).kind == ":":
                self.at += 2
                if self.peek().text == ".branchtargets":
                    self.at += 1
                    targets = []
                    while (word := self.next()).kind != ";":
                        if word.kind == "name":
                            targets.append(_Unresolved(word.text, scope, word.line))
                    unique = scope.unique(token.text)
                    function.tables[unique] = tuple(targets)
                    scope.names[token.text] = Symbol(unique)
                elif self.peek().text.startswith(".callprototype"):
                    self.skip_to(";")
                else:
                    scope.labels[token.text] = Label(scope.unique(token.text), len(function.body))
            else:
                function.body.append(self.instruction(scope))

    def instruction(self, scope: _Scope) -> Instruction:
        guard = None
        first = self.peek()
        if self.take("@"):
            negated = self.take("!") is not None
            token = self.expect("name")
            reg = scope.find(token.text)
            if not isinstance(reg, Reg):
                raise self.error(token, f"the guard {token.text} is no declared register")
            guard = Reg(reg.name, reg.type, negated)
        opcode = self.expect("name")
        op, *mods = opcode.text.split(".")
        operands = []
        while self.peek().kind != ";":
            operands.append(self.operand(scope))
            if not self.take(",") and self.peek().kind != ";":
                raise self.error(self.peek(), f"unexpected {self.peek().text!r} after an operand")
        end = self.expect(";")
        text = " ".join(self.text[first.start : end.end].split())
        return Instruction(op, tuple(mods), tuple(operands), guard, text, opcode.line, self.loc)

    def operand(self, scope: _Scope):
        token = self.peek()
        if self.take("{"):
            items = []
            while not self.take("}"):
                items.append(self.operand(scope))
                self.take(",")
            return Vector(tuple(items))
        if self.take("("):
            items = []
            while not self.take(")"):
                items.append(self.operand(scope))
                self.take(",")
            return Vector(tuple(items))
        if self.take("["):
            base = self.primary(scope, plus=False)
            offset, coords = 0, None
            while (sign := self.take("+", "-")) is not None:
                minus = self.take("-") is not None
                value = integer(self.expect("int").text)
                offset += -value if (sign.kind == "-") != minus else value
            if self.take(","):
                coords = self.operand(scope)
            self.expect("]")
            return Address(base, offset, coords)
        value = self.primary(scope)
        if self.take("|"):
            return Pair(value, self.primary(scope))
        if isinstance(value, _Unresolved) and token.kind not in ("name", "!", "-"):
            raise self.error(token, f"cannot read the operand {token.text!r}")
        return value

    def primary(self, scope: _Scope, plus: bool = True):
        token = self.next()
        if token.kind == "!":
            reg = self.primary(scope)
            if not isinstance(reg, Reg):
                raise self.error(token, "only a predicate can be negated")
            return Reg(reg.name, reg.type, True)
        if token.kind == "-":
            value = self.primary(scope)
            if isinstance(value, Imm):
                return Imm(-value.value)
            if isinstance(value, FloatImm):
                return FloatImm(-value.value, value.bits ^ 1 << (value.width - 1), value.width)
            raise self.error(token, "only a literal can be negative")
        if token.kind == "int":
            return Imm(integer(token.text))
        if token.kind == "float":
            return floating(token.text)
        if token.kind != "name":
            raise self.error(token, f"cannot read the operand {token.text!r}")
        if token.text == "_":
            return Sink()
        found = scope.find(token.text)
        if found is None:
            if token.text.startswith("%"):
                return Special(token.text)
            found = _Unresolved(token.text, scope, token.line)
        if plus and not isinstance(found, Reg) and self.take("+"):
            offset = integer(self.expect("int").text)
            if isinstance(found, Symbol):
                return Symbol(found.name, found.offset + offset)
            found.offset = offset
        return found

    def resolve(self, function: Function, module: Module) -> None:
        """Turns the names left open into labels or symbols."""

        def close(x):
            if isinstance(x, _Unresolved):
                label = x.scope.label(x.name)
                if label is not None:
                    return label
                known = x.scope.find(x.name)
                if isinstance(known, Symbol):
                    return Symbol(known.name, x.offset)
                if x.name in module.variables or x.name in module.functions or x.name == function.name:
                    return Symbol(x.name, x.offset)
                raise EmulatorError(f"PTX line {x.line}: {x.name} is neither a label nor declared")
            if isinstance(x, Vector):
                return Vector(tuple(close(i) for i in x.items))
            if isinstance(x, Address):
                return Address(close(x.base), x.offset, close(x.coords))
            if isinstance(x, Pair):
                return Pair(close(x.first), close(x.second))
            return x

        for inst in function.body:
            inst.operands = tuple(close(x) for x in inst.operands)
        function.tables = {k: tuple(close(x) for x in v) for k, v in function.tables.items()}


def _registered(scope: _Scope, name: str) -> str:
    return name if "@" in name else scope.unique(name)


