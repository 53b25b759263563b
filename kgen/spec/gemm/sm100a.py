"""What the user may choose of a GEMM on Blackwell (sm_100a).

tcgen05 multiplies out of shared memory into tensor memory, so accumulators cost no registers, and a pair of CTAs can
multiply together. A rule that ties one field to another is listed in RULES, so that all broken ones are reported
together.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kgen.errors import Refusal
from kgen.spec.gemm.common import Name, Part, ProblemSize, add_common_rules
from kgen.spec.gemm.epilogue import Ops, add_rules
from kgen.spec.rules import RuleSet

RULES: RuleSet[Spec] = RuleSet()
DEPTHS = {"bf16": 64, "fp16": 64, "tf32": 32, "e4m3": 128, "e5m2": 128, "e2m1": 256}  # elements in 128 bytes


class Dtype(Part):
    """Element types of the operands, the accumulator and the result."""

    input: Literal["bf16", "fp16", "tf32", "e4m3", "e5m2", "e2m1"] = Field(
        "bf16", description="element type of A and B; tf32 is stored as fp32, e2m1 two to a byte"
    )
    b: Literal["same", "e4m3", "e5m2"] = Field("same", description="element type of B where it is not A's")
    scales: Literal["none", "block32", "block16"] = Field(
        "none",
        description="scales of A and B along K: block32 is one ue8m0 per 32 elements (mxfp8, mxfp4), "
        "block16 one ue4m3 per 16 (nvfp4)",
    )
    accumulate: Literal["fp32"] = Field("fp32", description="element type of the accumulator")
    output: Literal["bf16", "fp16", "fp32", "e4m3"] = Field(
        "bf16", description="element type of D; e4m3 saturates at 448 and wants `cast` in `epilogue.ops` to scale it"
    )


class Tile(Part):
    """The part of the problem that one accumulator holds in each CTA, in elements."""

    m: Literal[128] = Field(128, description="rows of D per accumulator and CTA: the lanes of tensor memory")
    n: int = Field(
        256, ge=32, le=256, multiple_of=32, description="columns of D per CTA (one MMA spans them; a pair splits B)"
    )
    k: Literal["auto", 32, 64, 128, 256] = Field(
        "auto", description="depth of one k tile: as many elements as fill one 128-byte swizzled row (auto)"
    )


class Layout(Part):
    """Which index of an operand is contiguous in memory."""

    a: Literal["k", "m"] = Field("k", description="k: A is stored [m, k]; m: it is stored [k, m]")
    b: Literal["k", "n"] = Field("k", description="k: B is stored [n, k]; n: it is stored [k, n]")


class Schedule(Part):
    """Which CTA computes which tile of D, and when."""

    kind: Literal["single", "grid", "persistent", "clc"] = Field(
        "persistent",
        description="single: one tile, one CTA; grid: one CTA (or pair) per tile; persistent: resident CTAs walk the "
        "tiles; clc: they ask launch control for the tiles of CTAs that have not started",
    )
    group_m: int = Field(
        8, ge=1, le=64, description="persistent and clc raster: rows of tiles walked before stepping one column"
    )
    walk: Literal["down", "serpentine"] = Field(
        "down",
        description="persistent and clc raster: down: every column from its top; serpentine: down and up in turn, and "
        "every other group of rows backwards",
    )
    split_k: int = Field(
        1, ge=1, le=16, description="persistent: parts of K that different CTAs multiply, summed through a workspace"
    )
    ctas: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = Field(
        "auto", description="persistent: CTAs launched; auto = every SM of the card filled"
    )
    ctas_per_sm: int = Field(
        1, ge=1, le=8, description="CTAs that share an SM: no fewer (registers per thread are capped) and no more"
    )


class PipelineSpec(Part):
    """The rings between roles."""

    stages: int = Field(4, ge=1, le=32, description="k tiles in flight; each holds one tile of A and one of B")
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
    layout: Layout = Layout()
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


@RULES.rule("schedule.split_k", "schedule.kind", "warps.roles", "epilogue.store", "epilogue.ops")
def _split_of_k(s: Spec):
    """`schedule.split_k` above 1 needs a persistent schedule, `warps.roles: specialized`, `epilogue.store: tma` and no
    step that makes one column of two."""
    if s.schedule.split_k == 1:
        return
    if s.schedule.kind != "persistent":
        yield Refusal(
            "schedule.split_k",
            f"kind: {s.schedule.kind} gives a CTA whole tiles",
            "set split_k: 1, or schedule.kind: persistent",
        )
    if s.warps.roles == "unified":
        yield Refusal("schedule.split_k", "roles: unified multiplies all of K", "set split_k: 1, or roles: specialized")
    if s.epilogue.store == "direct":
        yield Refusal("schedule.split_k", "sums leave through store boxes", "set split_k: 1, or epilogue.store: tma")
    if any(op.pairs or op.op == "swiglu" for op in s.epilogue.ops):
        yield Refusal("schedule.split_k", "sums are shared by columns of the product, not by pairs", "set split_k: 1")


@RULES.rule("schedule.kind", "warps.roles")
def _scheduler_is_a_role(s: Spec):
    """`schedule.kind: clc` needs `warps.roles: specialized`."""
    if s.schedule.kind == "clc" and s.warps.roles == "unified":
        yield Refusal("schedule.kind", "a scheduler warp asks for tiles, which takes a role", "set roles: specialized")


@RULES.rule("cluster.cta_group", "schedule.ctas")
def _whole_pairs(s: Spec):
    """`schedule.ctas` is a whole number of pairs."""
    if s.schedule.ctas != "auto" and s.schedule.ctas % s.cluster.cta_group:
        down = s.schedule.ctas // 2 * 2
        yield Refusal("schedule.ctas", f"{s.schedule.ctas} CTAs are no whole pairs", f"set ctas: {down or 2}")


@RULES.rule("tile.k", "dtype.input")
def _whole_rows(s: Spec):
    """`tile.k` is what 128 bytes hold of `dtype.input`."""
    want = DEPTHS[s.dtype.input]
    if s.tile.k not in ("auto", want):
        yield Refusal("tile.k", f"a 128-byte row holds {want} {s.dtype.input}, not {s.tile.k}", f"set k: {want}")


@RULES.rule("dtype.b", "dtype.input")
def _only_fp8_mixes(s: Spec):
    """`dtype.b` needs an 8-bit `dtype.input`."""
    if s.dtype.b != "same" and s.dtype.input not in ("e4m3", "e5m2"):
        yield Refusal("dtype.b", f"an MMA mixes {s.dtype.b} with 8-bit types, not with {s.dtype.input}", "set b: same")


@RULES.rule("dtype.scales", "dtype.input")
def _scales_fit_the_type(s: Spec):
    """`dtype.scales` needs 8-bit or 4-bit elements (block16: 4-bit); e2m1 needs scales."""
    have, of = s.dtype.input, s.dtype.scales
    if of != "none" and have in ("bf16", "fp16", "tf32"):
        yield Refusal("dtype.scales", f"no MMA scales blocks of {have}", "set scales: none")
    elif of == "block16" and have != "e2m1":
        yield Refusal("dtype.scales", f"blocks of 16 are for e2m1; {have} has one scale per 32", "set scales: block32")
    elif of == "none" and have == "e2m1":
        yield Refusal("dtype.scales", "two e2m1 to a byte need scales", "set scales: block32 or block16")


@RULES.rule("dtype.input", "load")
def _threads_load_16_bits(s: Spec):
    """`load: threads` needs 16-bit elements."""
    if s.load == "threads" and s.dtype.input not in ("bf16", "fp16"):
        yield Refusal("load", f"threads load 16-bit elements, not {s.dtype.input}", "set load: tma")


@RULES.rule("dtype.scales", "warps.roles")
def _scales_need_roles(s: Spec):
    """`dtype.scales` needs `warps.roles: specialized`."""
    if s.dtype.scales != "none" and s.warps.roles == "unified":
        yield Refusal("dtype.scales", "only a producer warp loads scales", "set warps.roles: specialized")


@RULES.rule("dtype.scales", "tile.n")
def _whole_scale_atoms(s: Spec):
    """`dtype.scales` needs `tile.n: 128` or `256`."""
    if s.dtype.scales != "none" and s.tile.n % 128:
        yield Refusal(
            "tile.n",
            f"scales come in atoms of 128 rows of B; {s.tile.n} would cut one",
            "set n: 128" + (" or 256" if s.tile.n > 128 else ""),
        )


@RULES.rule("layout", "dtype.input", "dtype.scales")
def _only_16_bits_transpose(s: Spec):
    """`layout.a: m` and `layout.b: n` need 16-bit elements."""
    why = {
        "tf32": "32-bit elements transpose only in a swizzle that no template here writes",
        "e4m3": "no template here transposes 8-bit elements",
        "e5m2": "no template here transposes 8-bit elements",
        "e2m1": "the tensor core does not transpose packed 4-bit elements",
    }.get(s.dtype.input)
    for operand, major in (("a", s.layout.a), ("b", s.layout.b)):
        if major != "k" and why:
            yield Refusal(
                f"layout.{operand}",
                f"{operand.upper()} of {s.dtype.input} is read along k only: {why}",
                f"set {operand}: k",
            )


@RULES.rule("layout", "warps.roles")
def _boxes_need_roles(s: Spec):
    """`layout.a: m` and `layout.b: n` need `warps.roles: specialized`."""
    for operand, major in (("a", s.layout.a), ("b", s.layout.b)):
        if major != "k" and s.warps.roles == "unified":
            yield Refusal(
                f"layout.{operand}",
                "only a producer warp loads a tile in several boxes",
                f"set {operand}: k, or warps.roles: specialized",
            )


@RULES.rule("layout.b", "tile.n", "cluster.cta_group")
def _whole_boxes(s: Spec):
    """`layout.b: n` needs a whole number of 64-column boxes per CTA."""
    group = s.cluster.cta_group
    if s.layout.b == "n" and s.tile.n % (64 * group):
        near = max(64 * group, s.tile.n // (64 * group) * 64 * group)
        yield Refusal(
            "tile.n",
            f"a CTA holds {s.tile.n // group} columns of B, no whole 64-column boxes",
            f"set n: {near}, or layout.b: k",
        )


add_rules(RULES)
