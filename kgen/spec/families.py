"""The kernel families: which model validates `kernel: X` with `arch: Y`, and which rules tie its fields together."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from kgen.spec.rules import RuleSet


@dataclass(frozen=True)
class Variant:
    """A family on one architecture. Its module, with the model `Spec` and the rules `RULES`, is imported when asked
    for: `kgen new` reads one of them, and pydantic takes its time over each."""

    kernel: str
    arch: str
    module: str

    @property
    def model(self) -> type[BaseModel]:
        return importlib.import_module(self.module).Spec

    @property
    def rules(self) -> RuleSet:
        return importlib.import_module(self.module).RULES


@dataclass(frozen=True)
class Family:
    """One value of `kernel:`, with a variant for each `arch:` that has it, oldest first."""

    name: str
    summary: str
    variants: Mapping[str, Variant]

    @property
    def newest(self) -> Variant:
        return list(self.variants.values())[-1]


def _family(name: str, summary: str, *archs: str) -> Family:
    variants = {a: Variant(name, a, f"kgen.spec.{name}.{a.replace('_', '')}") for a in archs}
    return Family(name, summary, variants)


FAMILIES = {
    "gemm": _family("gemm", "D[m,n] = sum over k of A[m,k] * B[n,k]", "sm_90a", "sm_100a"),
}


def variants() -> Iterator[Variant]:
    """Every family on every architecture."""
    for family in FAMILIES.values():
        yield from family.variants.values()
