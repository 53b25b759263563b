"""The little language in which an epilogue says what becomes of an element: `x > 0 ? x : slope * x`.

Numbers, names, + - * /, comparisons, && and ||, the conditional, and the functions listed here. An expression is parsed
into a tree, so that it can be checked name by name and written out as C++ or as numpy, which know different spellings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# name: (arguments, in fp32 device code, overloaded for float and double, in numpy)
FUNCTIONS = {
    "exp": (1, "expf", "exp", "np.exp"),
    "log": (1, "logf", "log", "np.log"),
    "sqrt": (1, "sqrtf", "sqrt", "np.sqrt"),
    "tanh": (1, "tanhf", "tanh", "np.tanh"),
    "erf": (1, "erff", "erf", "erf"),
    "abs": (1, "fabsf", "fabs", "np.abs"),
    "sigmoid": (1, "sigmoid", "sigmoid", "sigmoid"),
    "min": (2, "fminf", "fmin", "np.minimum"),
    "max": (2, "fmaxf", "fmax", "np.maximum"),
}
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(<=|>=|==|!=|&&|\|\||[-+*/<>?:(),]))")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_BINDS = {"?": 1, "||": 2, "&&": 3, **dict.fromkeys(_COMPARISONS, 4), "+": 5, "-": 5, "*": 6, "/": 6, "neg": 7}
_DEEPEST = 40


class ExpressionError(ValueError):
    """What is wrong with an expression, in words that follow its quotation."""


@dataclass(frozen=True)
class Node:
    """A number, a name, a call, or an operator with its operands. `word` is what it is written with."""

    kind: str  # number, name, call, operator
    word: str
    inner: tuple[Node, ...] = ()

    @property
    def is_condition(self) -> bool:
        return self.kind == "operator" and self.word in (*_COMPARISONS, "&&", "||")

    def words(self) -> set[str]:
        """Everything it is written with."""
        return {self.word}.union(*(node.words() for node in self.inner))

    @property
    def roundings(self) -> int:
        """By how many halves of a unit in the last place its operations may be off together, each by one of its own
        result and functions by four (CUDA C++ Programming Guide, "Mathematical Functions": up to two units)."""
        own = 0
        if self.kind == "call" and self.word not in ("min", "max", "abs"):
            own = 4  # two units are four halves, which is what a rounding errs by
        elif self.kind == "operator" and self.word in "+-*/":
            own = 1
        return own + sum(node.roundings for node in self.inner)

    def names(self) -> Iterator[str]:
        """Every name it reads, as often as it does; functions are no names."""
        if self.kind == "name":
            yield self.word
        for node in self.inner:
            yield from node.names()


def parse(code: str) -> Node:
    """The tree of an expression that gives a number; raises ExpressionError."""
    reader = _Reader(_tokens(code))
    tree = reader.conditional(0)
    if reader.at < len(reader.tokens):
        raise ExpressionError(f"goes on after its end, at {reader.tokens[reader.at]!r}")
    return _number(tree)


def _tokens(code: str) -> list[str]:
    found, at = [], 0
    code = code.rstrip()
    while at < len(code):
        match = _TOKEN.match(code, at)
        if match is None:
            raise ExpressionError(f"has a character it cannot have: {code[at:].lstrip()[0]!r}")
        found.append(match.group().strip())
        at = match.end()
    return found


def _number(node: Node) -> Node:
    if node.is_condition:
        raise ExpressionError(f"uses {node.word!r}, which is true or false, where a number is wanted")
    return node


def _condition(node: Node) -> Node:
    if not node.is_condition:
        raise ExpressionError("uses a number where a comparison is wanted")
    return node


class _Reader:
    """Recursive descent, weakest operator first."""

    def __init__(self, tokens: list[str]):
        self.tokens, self.at = tokens, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *words: str) -> str:
        """The next token if it is one of `words`, and nothing otherwise."""
        if self.peek() not in words or not self.peek():
            return ""
        self.at += 1
        return self.tokens[self.at - 1]

    def need(self, word: str) -> None:
        if not self.take(word):
            raise ExpressionError(f"lacks {word!r} " + (f"before {self.peek()!r}" if self.peek() else "at its end"))

    def conditional(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise ExpressionError("is nested too deeply")
        test = self.binary(0, depth)
        if not self.take("?"):
            return test
        yes = _number(self.conditional(depth + 1))
        self.need(":")
        return Node("operator", "?", (_condition(test), yes, _number(self.conditional(depth + 1))))

    LEVELS = (("||",), ("&&",), _COMPARISONS, ("+", "-"), ("*", "/"))

    def binary(self, level: int, depth: int) -> Node:
        if level == len(self.LEVELS):
            return self.unary(depth)
        left = self.binary(level + 1, depth)
        check = _condition if level < 2 else _number
        while word := self.take(*self.LEVELS[level]):
            left = Node("operator", word, (check(left), check(self.binary(level + 1, depth))))
        return left

    def unary(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise ExpressionError("is nested too deeply")
        if self.take("-"):
            return Node("operator", "neg", (_number(self.unary(depth + 1)),))
        if self.take("("):
            inner = self.conditional(depth + 1)
            self.need(")")
            return inner
        word = self.peek()
        if not re.match(r"[\w.]", word):
            raise ExpressionError("lacks a number or a name " + (f"before {word!r}" if word else "at its end"))
        self.at += 1
        if not (word[0].isalpha() or word[0] == "_"):
            return Node("number", word)
        return self.call(word, depth) if self.take("(") else Node("name", word)

    def call(self, function: str, depth: int) -> Node:
        if function not in FUNCTIONS:
            raise ExpressionError(f"calls {function!r}; known are " + ", ".join(FUNCTIONS))
        inner = [_number(self.conditional(depth + 1))]
        while self.take(","):
            inner.append(_number(self.conditional(depth + 1)))
        self.need(")")
        if len(inner) != FUNCTIONS[function][0]:
            raise ExpressionError(f"gives {function} {len(inner)} arguments; it takes {FUNCTIONS[function][0]}")
        return Node("call", function, tuple(inner))


@dataclass(frozen=True)
class Dialect:
    """How numbers, functions and the conditional are spelt."""

    number: Callable[[str], str]
    function: int  # column of FUNCTIONS; one past the last: as it is
    conditional: str
    words: Mapping[str, str]


def _fraction(word: str) -> str:
    return word if re.search(r"[.eE]", word) else word + ".0"


DEVICE = Dialect(lambda word: _fraction(word) + "f", 1, "{} ? {} : {}", {})
# For either precision: `Real` is float or double.
GENERIC = Dialect(lambda word: f"Real({_fraction(word)})", 2, "{} ? {} : {}", {})
PLAIN = Dialect(str, 4, "{} ? {} : {}", {})  # as it was given
NUMPY = Dialect(_fraction, 3, "np.where({}, {}, {})", {"&&": "&", "||": "|"})


def written(node: Node, names: Mapping[str, str], dialect: Dialect) -> str:
    """The expression in a dialect, every name replaced by what `names` has for it."""
    return _written(node, names, dialect, 0)


def _written(node: Node, names: Mapping[str, str], dialect: Dialect, outer: int) -> str:
    if node.kind == "number":
        return dialect.number(node.word)
    if node.kind == "name":
        return names[node.word]
    if node.kind == "call":
        inner = ", ".join(_written(n, names, dialect, 0) for n in node.inner)
        text = f"{(*FUNCTIONS[node.word], node.word)[dialect.function]}({inner})"
        # numpy's functions make a float64 of a literal, which would lift all that follows to its precision.
        return f"float({text})" if dialect is NUMPY and not any(node.names()) else text
    binds = _BINDS[node.word]
    if node.word == "?":
        is_call = not dialect.conditional.startswith("{")
        # Of a conditional's parts only the last may be another without parentheses.
        parts = [_written(n, names, dialect, 0 if is_call or i == 2 else 2) for i, n in enumerate(node.inner)]
        text = dialect.conditional.format(*parts)
        return text if is_call else _bracketed(text, outer > binds)
    if node.word == "neg":
        return _bracketed("-" + _written(node.inner[0], names, dialect, binds + 1), outer > binds)
    left, right = node.inner
    word = dialect.words.get(node.word, node.word)
    # numpy's & and | bind tighter than a comparison; gcc wants && within || in parentheses.
    tight = 8 if node.word in ("&&", "||") else binds
    text = f"{_written(left, names, dialect, tight)} {word} {_written(right, names, dialect, max(tight, binds + 1))}"
    return _bracketed(text, outer > binds)


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
