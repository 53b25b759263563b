"""What a parsed PTX program is made of: operands, instructions, variables, functions, modules."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "Address",
    "FloatImm",
    "Function",
    "Imm",
    "Instruction",
    "Label",
    "Module",
    "Pair",
    "Reg",
    "Sink",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
]


@dataclass(frozen=True)
class Reg:
    """A virtual register; `name` is unique in its function, `type` as declared ("b32", "pred")."""

    name: str
    type: str
    negated: bool = False


@dataclass(frozen=True)
class Special:
    """A special register, `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An integer literal, of any width."""

    value: int


@dataclass(frozen=True)
class FloatImm:
    """A floating literal. `bits` is the pattern of 0f (32 bits) or 0d (64 bits)."""

    value: float
    bits: int
    width: int


@dataclass(frozen=True)
class Symbol:
    """The address of a variable or function, plus `offset` bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Label:
    """A branch target: an index into the function's body."""

    name: str
    index: int


@dataclass(frozen=True)
class Sink:
    """`_`: the result is not wanted."""


@dataclass(frozen=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple


@dataclass(frozen=True)
class Pair:
    """`d|p`: two results."""

    first: object
    second: object


@dataclass(frozen=True)
class Address:
    """`[base + offset]`, in bytes; `coords` are those of a tensor access, `[base, {c0, c1}]`."""

    base: object
    offset: int = 0
    coords: Vector | None = None


@dataclass(eq=False)
class Instruction:
    """One instruction. `line` is 1-based in the PTX text, `loc` the source "file:line" that .loc names."""

    op: str
    mods: tuple[str, ...]
    operands: tuple
    guard: Reg | None
    text: str
    line: int
    loc: str = ""

    @property
    def name(self) -> str:
        """Opcode and modifiers, as written."""
        return ".".join((self.op, *self.mods))

    def where(self) -> str:
        """The place, for messages."""
        return f"PTX line {self.line}" + (f" ({self.loc})" if self.loc else "")


@dataclass
class Variable:
    """A variable of state space `space`; `size` in bytes, None for `extern name[]`. `init`: its first bytes,
    and (offset, symbol) pairs where an initialiser holds an address."""

    name: str
    space: str
    align: int
    size: int | None
    type: str
    init: bytes = b""
    relocations: list[tuple[int, Symbol]] = field(default_factory=list)


@dataclass
class Function:
    """A kernel (`entry`) or device function. `body` holds instructions; labels are indices into it."""

    name: str
    entry: bool
    params: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    body: list[Instruction] | None = None
    variables: dict[str, Variable] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tables: dict[str, tuple[Label, ...]] = field(default_factory=dict)


@dataclass
class Module:
    """A PTX file."""

    version: str = ""
    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

    @property
    def entries(self) -> list[Function]:
        """The kernels."""
        return [f for f in self.functions.values() if f.entry]
