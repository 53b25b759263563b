"""What the user may choose of a GEMM on Blackwell (sm_100a).

tcgen05 multiplies out of shared memory into tensor memory, so accumulators cost no registers, and a pair of CTAs can
multiply together. A rule that ties one field to another is listed in RULES, so that all broken ones are reported
together.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kgen.errors import Refusal
from kgen.spec.gemm.common import Name, Part, ProblemSize
from kgen.spec.gemm.epilogue import Ops, add_rules
from kgen.spec.rules import RuleSet

RULES: RuleSet[Spec] = RuleSet()


class Dtype(Part):
    """Element types of the operands, the accumulator and the result."""

    input: Literal["bf16", "fp16"] = Field("bf16", description="element type of A and B")
    accumulate: Literal["fp32"] = Field("fp32", description="element type of the accumulator")
    output: Literal["bf16", "fp16", "fp32"] = Field("bf16", description="element type of D")


class Tile(Part):
    """The part of the problem that one accumulator holds in each CTA, in elements."""

    m: Literal[128] = Field(128, description="rows of D per accumulator and CTA: the lanes of tensor memory")
    n: int = Field(
        256, ge=32, le=256, multiple_of=32, description="columns of D per CTA (one MMA spans them; a pair splits B)"
    )
    k: Literal[64] = Field(64, description="depth of one k tile: 64 16-bit elements fill one 128-byte swizzled row")


class Schedule(Part):
    """Which CTA computes which tile of D, and when."""

    kind: Literal["single", "grid", "persistent"] = Field(
        "persistent",
        description="single: one tile, one CTA; grid: one CTA (or pair) per tile; "
        "persistent: resident CTAs walk the tiles",
    )
    group_m: int = Field(
        8, ge=1, le=64, description="persistent raster: rows of tiles walked before stepping one column"
    )
    ctas: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = Field(
        "auto", description="persistent: CTAs launched; auto = every SM of the card filled"
    )
    ctas_per_sm: int = Field(
        1, ge=1, le=8, description="CTAs that share an SM: no fewer (registers per thread are capped) and no more"
    )


class PipelineSpec(Part):
    """The rings between roles."""

    stages: int = Field(4, ge=1, le=16, description="k tiles in flight; each holds one tile of A and one of B")
    accumulators: Literal[1, 2] = Field(
        1, description="accumulators per consumer in tensor memory: with 2, one is stored while the other is filled"
    )


class Registers(Part):
    """Registers per thread after `setmaxnreg` moves them between warpgroups."""

    control: int = Field(64, ge=24, le=256, multiple_of=8, description="registers per thread that loads or issues MMAs")
    epilogue: int = Field(216, ge=24, le=256, multiple_of=8, description="registers per thread that stores D")


class Warps(Part):
    """Who does what inside a CTA."""

    roles: Literal["unified", "specialized"] = Field(
        "specialized",
        description="unified: one warpgroup loads, multiplies and stores in turn; specialized: a producer warp loads, "
        "one warp per consumer issues MMAs, one warpgroup per consumer stores",
    )
    consumers: Literal[1, 2] = Field(1, description="accumulators that a k tile of B feeds; each owns tile.m rows of D")
    registers: Registers | None = Field(
        None, description="register split by setmaxnreg; absent: the compiler's even split"
    )


class Cluster(Part):
    """CTAs that multiply together."""

    cta_group: Literal[1, 2] = Field(
        1, description="2: a pair of CTAs stacked along M; each holds half of B, the tensor cores read both"
    )


class Epilogue(Part):
    """How the accumulators reach D."""

    store: Literal["direct", "tma"] = Field(
        "tma", description="direct: predicated global stores; tma: staged in shared memory, then bulk tensor stores"
    )
    staging: int = Field(
        2, ge=1, le=8, description="tma: staging buffers per warp (32 rows of 128 bytes each), used in turn"
    )
    ops: Ops = Field((), description="what becomes of each element before it is rounded to D, in order")


class Spec(Part):
    """A GEMM kernel on Blackwell: D[m,n] = sum over k of A[m,k] * B[n,k]."""

    EXAMPLE: ClassVar[dict] = {"kernel": "gemm", "arch": "sm_100a", "name": "example"}

    kernel: Literal["gemm"] = Field(description="the kernel family")
    arch: Literal["sm_100a"] = Field(description="the GPU architecture the kernel is written for")
    name: Name = Field(description="names the files, the C symbols and the namespace")
    about: str = Field("", description="one paragraph that opens the generated file: why this kernel exists")
    dtype: Dtype = Dtype()
    tile: Tile = Tile()
    load: Literal["threads", "tma"] = Field(
        "tma", description="who moves A and B to shared memory: all threads, or the TMA engine"
    )
    k_loop: Literal["once", "loop"] = Field(
        "loop", description="once: the whole K is one k tile; loop: accumulate over k tiles"
    )
    schedule: Schedule = Schedule()
    pipeline: PipelineSpec = PipelineSpec()
    warps: Warps = Warps()
    cluster: Cluster = Cluster()
    epilogue: Epilogue = Epilogue()
    problem: ProblemSize = ProblemSize()


@RULES.rule("k_loop", "load", "schedule.kind")
def _once(s: Spec):
    """`k_loop: once` is the one-tile kernel: it needs `load: threads` and `schedule.kind: single`."""
    if s.k_loop == "once" and (s.load, s.schedule.kind) != ("threads", "single"):
        yield Refusal(
            "k_loop",
            "'once' is the one-tile kernel and needs load: threads and schedule.kind: single",
            "set k_loop: loop",
        )


@RULES.rule("pipeline.stages", "load")
def _thread_loads_have_no_ring(s: Spec):
    """`load: threads` takes `pipeline.stages: 1`."""
    if s.load == "threads" and s.pipeline.stages > 1:
        yield Refusal(
            "pipeline.stages",
            f"{s.pipeline.stages} stages need asynchronous loads; load: threads fills one buffer and waits",
            "set stages: 1, or load: tma",
        )


@RULES.rule("warps.roles", "load")
def _roles_need_tma(s: Spec):
    """`warps.roles: specialized` needs `load: tma`."""
    if s.warps.roles == "specialized" and s.load == "threads":
        yield Refusal("warps.roles", "a producer warp loads through TMA only", "set load: tma, or roles: unified")


@RULES.rule("warps.roles", "warps.consumers")
def _consumers_need_roles(s: Spec):
    """More than one consumer needs `warps.roles: specialized`."""
    if s.warps.roles == "unified" and s.warps.consumers > 1:
        yield Refusal(
            "warps.consumers",
            f"{s.warps.consumers} consumers need roles: specialized; unified is one warpgroup",
            "set consumers: 1, or roles: specialized",
        )


@RULES.rule("warps.roles", "warps.registers")
def _split_needs_roles(s: Spec):
    """`warps.registers` needs `warps.roles: specialized`."""
    if s.warps.roles == "unified" and s.warps.registers is not None:
        yield Refusal(
            "warps.registers", "setmaxnreg moves registers between roles; unified has one", "remove registers"
        )


@RULES.rule("pipeline.accumulators", "warps.roles", "schedule.kind")
def _second_accumulator_overlaps(s: Spec):
    """`pipeline.accumulators: 2` needs `warps.roles: specialized` and a persistent schedule."""
    if s.pipeline.accumulators == 1:
        return
    if s.warps.roles == "unified":
        yield Refusal(
            "pipeline.accumulators", "one warpgroup stores before it multiplies again", "set accumulators: 1"
        )
    elif s.schedule.kind in ("single", "grid"):
        yield Refusal(
            "pipeline.accumulators",
            f"kind: {s.schedule.kind} gives a CTA one tile, which fills one accumulator",
            "set accumulators: 1, or schedule.kind: persistent",
        )


@RULES.rule("cluster.cta_group", "warps.roles", "schedule.kind")
def _pair_needs_roles(s: Spec):
    """A CTA pair needs `warps.roles: specialized` and more than one tile."""
    if s.cluster.cta_group == 2 and s.warps.roles == "unified":
        yield Refusal(
            "cluster.cta_group", "one CTA of a pair issues for both, which takes a role", "set roles: specialized"
        )
    if s.cluster.cta_group == 2 and s.schedule.kind == "single":
        yield Refusal(
            "cluster.cta_group", "schedule.kind: single launches one CTA", "set schedule.kind: grid or persistent"
        )


@RULES.rule("cluster.cta_group", "schedule.ctas")
def _whole_pairs(s: Spec):
    """`schedule.ctas` is a whole number of pairs."""
    if s.schedule.ctas != "auto" and s.schedule.ctas % s.cluster.cta_group:
        down = s.schedule.ctas // 2 * 2
        yield Refusal("schedule.ctas", f"{s.schedule.ctas} CTAs are no whole pairs", f"set ctas: {down or 2}")


@RULES.rule("schedule.ctas", "schedule.kind")
def _ctas_are_persistent(s: Spec):
    """`schedule.ctas` needs `schedule.kind: persistent`."""
    if s.schedule.ctas != "auto" and s.schedule.kind != "persistent":
        yield Refusal(
            "schedule.ctas", f"kind: {s.schedule.kind} launches one CTA per tile", "remove ctas, or kind: persistent"
        )


add_rules(RULES)
