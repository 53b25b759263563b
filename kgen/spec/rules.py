"""Rules that tie spec fields together, each naming the fields it reads.

Naming them lets the loader skip exactly the rules that would read a field already reported as wrong, so one run
shows every mistake and no consequence of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from kgen.errors import Refusal

S = TypeVar("S")


def overlaps(a: str, b: str) -> bool:
    """Whether two dotted field paths are the same or one contains the other."""
    return a == b or a.startswith(b + ".") or b.startswith(a + ".")


class RuleSet(Generic[S]):
    """An ordered collection of rules over one spec type."""

    def __init__(self) -> None:
        self._rules: list[tuple[tuple[str, ...], Callable[[S], Iterable[Refusal]]]] = []

    def rule(self, *fields: str):
        """Register a generator of refusals that reads only `fields` (dotted paths)."""

        def register(fn: Callable[[S], Iterable[Refusal]]):
            self._rules.append((fields, fn))
            return fn

        return register

    def broken(self, spec: S, known_wrong: Iterable[str] = ()) -> Iterator[Refusal]:
        """Refusals of every rule that reads no field in `known_wrong`."""
        wrong = tuple(known_wrong)
        for fields, fn in self._rules:
            if not any(overlaps(f, w) for f in fields for w in wrong):
                yield from fn(spec)

    def descriptions(self) -> list[str]:
        """Each rule in a sentence: its docstring."""
        return [" ".join((fn.__doc__ or fn.__name__).split()) for _, fn in self._rules]
