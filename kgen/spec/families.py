"""The kernel families: which model validates `kernel: X` and which rules tie its fields together."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from kgen.spec import gemm
from kgen.spec.rules import RuleSet


@dataclass(frozen=True)
class Family:
    """One value of `kernel:`."""

    name: str
    model: type[BaseModel]
    rules: RuleSet
    summary: str


FAMILIES = {
    "gemm": Family("gemm", gemm.GemmSpec, gemm.RULES, "D[m,n] = sum over k of A[m,k] * B[n,k]"),
}
