"""What the GEMM specs of all architectures share.

`D[m,n] = sum_k A[m,k] * B[n,k]`, A and B row-major (K innermost). Nothing in a spec is derived: sizes, barriers and
counts follow in `kgen.plan`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_C_WORDS = frozenset(
    """auto bool break case char class const continue default delete do double else enum extern false float for goto
    if inline int long main namespace new operator private public register return short signed sizeof static struct
    switch template this true typedef union unsigned using virtual void volatile while""".split()  # noqa: SIM905
)


def _identifier(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,47}", name):
        raise ValueError(
            "must be a C identifier of lower-case letters, digits and _, at most 48 long; it names files and symbols"
        )
    if name in _C_WORDS:
        raise ValueError("is a word of C++; choose another name")
    return name


class Part(BaseModel):
    """A mapping of the spec: frozen, and nothing in it goes unread."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Name = Annotated[str, AfterValidator(_identifier)]


class ProblemSize(Part):
    """The shape that the project's own check and benchmark use by default."""

    m: int = Field(4096, ge=1, lt=2**31, description="rows of A and D")
    n: int = Field(4096, ge=1, lt=2**31, description="rows of B, columns of D")
    k: int = Field(4096, ge=1, lt=2**31, description="columns of A and B")
