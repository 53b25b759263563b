"""What the user may choose of a GEMM on Hopper (sm_90a).

A rule that ties one field to another is listed in RULES, so that all broken ones are reported together.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kgen.errors import Refusal
from kgen.spec.gemm.common import Name, Part, ProblemSize, add_common_rules
from kgen.spec.gemm.epilogue import Ops, add_rules
from kgen.spec.rules import RuleSet

RULES: RuleSet[Spec] = RuleSet()


class Dtype(Part):
    """Element types of the operands, the accumulator and the result."""

    input: Literal["bf16", "fp16"] = Field("bf16", description="element type of A and B")
    accumulate: Literal["fp32"] = Field("fp32", description="element type of the accumulator")
    output: Literal["bf16", "fp16", "fp32", "e4m3"] = Field(
        "bf16", description="element type of D; e4m3 saturates at 448 and wants `cast` in `epilogue.ops` to scale it"
    )


class Tile(Part):
    """The part of the problem that one consumer works on at a time, in elements."""

    m: int = Field(
        64, ge=64, le=256, multiple_of=64, description="rows of D per consumer warpgroup (wgmma works on 64)"
    )
    n: int = Field(256, ge=8, le=256, multiple_of=8, description="columns of D per CTA (one wgmma spans them)")
    k: Literal[64] = Field(
        64, description="depth of one k tile: 64 16-bit elements fill one 128-byte swizzled row"
    )


class Schedule(Part):
    """Which CTA computes which tile of D, and when."""

    kind: Literal["single", "grid", "persistent"] = Field(
        "persistent",
        description="single: one tile, one CTA; grid: one CTA per tile; persistent: resident CTAs walk the tiles",
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
    """The ring of shared-memory buffers between loads and matrix multiplies."""

    stages: int = Field(4, ge=1, le=32, description="k tiles in flight; each holds one tile of A and one of B")


class Registers(Part):
    """Registers per thread after `setmaxnreg` moves them between warpgroups."""

    producer: int = Field(40, ge=24, le=256, multiple_of=8, description="registers per producer thread")
    consumer: int = Field(232, ge=24, le=256, multiple_of=8, description="registers per consumer thread")


class Warps(Part):
    """Who does what inside a CTA."""

    roles: Literal["unified", "specialized"] = Field(
        "specialized",
        description="unified: one warpgroup loads, multiplies and stores in turn; "
        "specialized: a producer warp loads while consumer warpgroups multiply and store",
    )
    consumers: int = Field(1, ge=1, le=3, description="consumer warpgroups; each owns tile.m rows, all share B")
    registers: Registers | None = Field(
        None, description="register split by setmaxnreg; absent: the compiler's even split"
    )


class Cluster(Part):
    """CTAs that share loads through TMA multicast."""

    size: Literal[1, 2, 4] = Field(1, description="CTAs per cluster")
    multicast: Literal["none", "a", "b"] = Field(
        "none",
        description="the shared operand: b = CTAs stacked along M share B; a = CTAs side by side along N share A",
    )


class Epilogue(Part):
    """How the accumulators reach D."""

    store: Literal["direct", "tma"] = Field(
        "tma", description="direct: predicated global stores; tma: staged in shared memory, then bulk tensor stores"
    )
    staging: int = Field(
        2, ge=1, le=8, description="tma: staging buffers per warp (16 rows of 128 bytes each), used in turn"
    )
    ops: Ops = Field((), description="what becomes of each element before it is rounded to D, in order")


class Spec(Part):
    """A GEMM kernel on Hopper: D[m,n] = sum over k of A[m,k] * B[n,k]."""

    EXAMPLE: ClassVar[dict] = {"kernel": "gemm", "arch": "sm_90a", "name": "example"}

    kernel: Literal["gemm"] = Field(description="the kernel family")
    arch: Literal["sm_90a"] = Field(description="the GPU architecture the kernel is written for")
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


add_common_rules(RULES)


@RULES.rule("warps.roles", "pipeline.stages", "load")
def _roles_need_a_ring(s: Spec):
    """`warps.roles: specialized` needs at least 2 stages: one stays under the wgmma group in flight."""
    # With thread loads the roles themselves are refused, and more stages would be as wrong.
    if s.warps.roles == "specialized" and s.load == "tma" and s.pipeline.stages < 2:
        yield Refusal(
            "pipeline.stages",
            "a specialized kernel holds one stage under the wgmma group in flight and fills another: 1 < 2",
            "set stages: 2 or more",
        )


@RULES.rule("cluster.size", "cluster.multicast")
def _cluster_shares(s: Spec):
    """`cluster.size` above 1 and `cluster.multicast` go together."""
    if s.cluster.size > 1 and s.cluster.multicast == "none":
        yield Refusal(
            "cluster.multicast", "a cluster without a shared operand gains nothing", "set multicast: b (or a)"
        )
    if s.cluster.size == 1 and s.cluster.multicast != "none":
        yield Refusal(
            "cluster.multicast", "one CTA has nobody to share with", "set cluster.size: 2, or multicast: none"
        )


@RULES.rule("cluster.size", "warps.roles", "schedule.kind")
def _cluster_needs_roles(s: Spec):
    """A cluster needs `warps.roles: specialized` and more than one tile."""
    if s.cluster.size > 1 and s.warps.roles == "unified":
        yield Refusal(
            "cluster.size", "multicast needs a producer that waits for every CTA's consumers", "set roles: specialized"
        )
    if s.cluster.size > 1 and s.schedule.kind == "single":
        yield Refusal("cluster.size", "schedule.kind: single launches one CTA", "set schedule.kind: grid or persistent")


@RULES.rule("cluster.size", "schedule.ctas")
def _whole_clusters(s: Spec):
    """`schedule.ctas` is a whole number of clusters."""
    if s.schedule.ctas != "auto" and s.schedule.ctas % s.cluster.size:
        down = s.schedule.ctas // s.cluster.size * s.cluster.size
        yield Refusal(
            "schedule.ctas",
            f"{s.schedule.ctas} CTAs are no whole number of clusters of {s.cluster.size}",
            f"set ctas: {down or s.cluster.size}",
        )


add_rules(RULES)
