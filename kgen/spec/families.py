"""The kernel families: which model validates `kernel: X` with `arch: Y`, and which rules tie its fields together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from kgen.spec.gemm import sm90a, sm100a
from kgen.spec.rules import RuleSet


@dataclass(frozen=True)
class Variant:
    """A family on one architecture."""

    kernel: str
    arch: str
    model: type[BaseModel]
    rules: RuleSet


@dataclass(frozen=True)
class Family:
    """One value of `kernel:`, with a variant for each `arch:` that has it, oldest first."""

    name: str
    summary: str
    variants: Mapping[str, Variant]

    @property
    def newest(self) -> Variant:
        return list(self.variants.values())[-1]


def _family(name: str, summary: str, **by_arch) -> Family:
    variants = {arch: Variant(name, arch, module.Spec, module.RULES) for arch, module in by_arch.items()}
    return Family(name, summary, variants)


FAMILIES = {
    "gemm": _family("gemm", "D[m,n] = sum over k of A[m,k] * B[n,k]", sm_90a=sm90a, sm_100a=sm100a),
}


def variants() -> Iterator[Variant]:
    """Every family on every architecture."""
    for family in FAMILIES.values():
        yield from family.variants.values()
