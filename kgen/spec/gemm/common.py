"""What the GEMM specs of all architectures share.

`D[m,n] = sum_k A[m,k] * B[n,k]`, A and B row-major (K innermost). Nothing in a spec is derived: sizes, barriers and
counts follow in `kgen.plan`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kgen.errors import Refusal
from kgen.spec.rules import RuleSet

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


def add_common_rules(rules: RuleSet) -> None:
    """The rules that every architecture has, for the specs of one: they read only fields that all of them have."""
    rules.rule("k_loop", "load", "schedule.kind")(_once)
    rules.rule("pipeline.stages", "load")(_thread_loads_have_no_ring)
    rules.rule("warps.roles", "load")(_roles_need_tma)
    rules.rule("warps.roles", "warps.consumers")(_consumers_need_roles)
    rules.rule("warps.roles", "warps.registers")(_split_needs_roles)
    rules.rule("schedule.ctas", "schedule.kind")(_ctas_are_persistent)
    rules.rule("schedule.kind", "schedule.group_m", "schedule.walk")(_raster_needs_a_walk)
    rules.rule("epilogue.staging", "epilogue.store")(_staging_is_for_tma)


def _once(s):
    """`k_loop: once` is the one-tile kernel: it needs `load: threads` and `schedule.kind: single`."""
    if s.k_loop == "once" and (s.load, s.schedule.kind) != ("threads", "single"):
        yield Refusal(
            "k_loop",
            "'once' is the one-tile kernel and needs load: threads and schedule.kind: single",
            "set k_loop: loop",
        )


def _thread_loads_have_no_ring(s):
    """`load: threads` takes `pipeline.stages: 1`."""
    if s.load == "threads" and s.pipeline.stages > 1:
        yield Refusal(
            "pipeline.stages",
            f"{s.pipeline.stages} stages need asynchronous loads; load: threads fills one buffer and waits",
            "set stages: 1, or load: tma",
        )


def _roles_need_tma(s):
    """`warps.roles: specialized` needs `load: tma`."""
    if s.warps.roles == "specialized" and s.load == "threads":
        yield Refusal("warps.roles", "a producer warp loads through TMA only", "set load: tma, or roles: unified")


def _consumers_need_roles(s):
    """More than one consumer needs `warps.roles: specialized`."""
    if s.warps.roles == "unified" and s.warps.consumers > 1:
        yield Refusal(
            "warps.consumers",
            f"{s.warps.consumers} consumers need roles: specialized; unified is one warpgroup",
            "set consumers: 1, or roles: specialized",
        )


def _split_needs_roles(s):
    """`warps.registers` needs `warps.roles: specialized`."""
    if s.warps.roles == "unified" and s.warps.registers is not None:
        yield Refusal(
            "warps.registers", "setmaxnreg moves registers between roles; unified has one", "remove registers"
        )


def _ctas_are_persistent(s):
    """`schedule.ctas` needs `schedule.kind: persistent`."""
    if s.schedule.ctas != "auto" and s.schedule.kind != "persistent":
        yield Refusal(
            "schedule.ctas", f"kind: {s.schedule.kind} launches one CTA per tile", "remove ctas, or kind: persistent"
        )


# A field that a kernel has no use for may stay at its default: presets write defaults out, and `--set` takes nothing
# away.


def _raster_needs_a_walk(s):
    """What orders a walk over tiles (`schedule.group_m`, for one) needs one: `single` and `grid` have none."""
    if s.schedule.kind not in ("single", "grid"):
        return
    fields = type(s.schedule).model_fields
    for name in ("group_m", "walk"):
        if name in fields and (given := getattr(s.schedule, name)) != (default := fields[name].default):
            yield Refusal(
                f"schedule.{name}",
                f"{given} orders a walk over tiles; kind: {s.schedule.kind} gives a CTA one tile",
                f"leave {name} at {default}, or set kind: persistent",
            )


def _staging_is_for_tma(s):
    """`epilogue.staging` needs `epilogue.store: tma`."""
    default = type(s.epilogue).model_fields["staging"].default
    if s.epilogue.store == "direct" and s.epilogue.staging != default:
        yield Refusal(
            "epilogue.staging",
            f"{s.epilogue.staging} is a number of staging buffers; store: direct has none",
            f"leave staging at {default}, or set store: tma",
        )
