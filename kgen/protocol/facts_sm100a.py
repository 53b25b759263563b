"""What must hold of a plan for Blackwell: tensor memory, the instruction descriptor, counts.

Sources: PTX ISA, tcgen05 sections (allocation, instruction descriptor, shapes by kind and cta_group).
"""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.common import GemmPlan
from kgen.protocol.fact import Broken, constant, register_split, stage_tile

COLUMNS = 512  # of tensor memory per SM
# Type codes of A and B by kind.
FORMATS = {
    "f16": {"fp16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1},
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
DEPTHS = {"f16": 16, "tf32": 8, "f8f6f4": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}  # K of one MMA
# (scale type, elements of K per scale) that a kind takes here.
SCALES = {"mxf8f6f4": ("ue8m0", 32), "mxf4": ("ue8m0", 32), "mxf4nvf4": ("ue4m3", 16)}
F32_ACCUMULATOR = 1
ANSWER = 16  # bytes of cluster launch control's
UE8M0 = 1 << 23


def registers(plan: GemmPlan) -> Iterator[Broken]:
    yield from register_split(plan)
    have = plan.roles[0].registers or plan.launch.launch_registers
    if plan.chunk >= have:
        yield Broken("registers", f"{plan.chunk} columns at a time; an epilogue thread has {have} registers")


def tensor_memory(plan: GemmPlan) -> Iterator[Broken]:
    tmem, end, before = plan.tmem, 0, ""
    if tmem.allocated not in (32, 64, 128, 256, 512):
        yield Broken("tensor memory", f"{tmem.allocated} columns; a power of two from 32 to 512")
    for region in sorted(tmem.regions, key=lambda r: r.first):
        if region.first < end:
            yield Broken("tensor memory", f"{region.name} at column {region.first} overlaps {before}, which ends at "
                         f"{end}")  # fmt: skip
        end, before = region.first + region.columns, region.name
    if end > tmem.allocated:
        yield Broken("tensor memory", f"{end} columns used of {tmem.allocated} allocated")
    if tmem.allocated != constant(plan, "TMEM_COLUMNS"):
        yield Broken("tensor memory", f"TMEM_COLUMNS is {constant(plan, 'TMEM_COLUMNS')}; the map has {tmem.allocated}")
    if plan.launch.ctas_per_sm * tmem.allocated > COLUMNS:
        yield Broken("tensor memory", f"{plan.launch.ctas_per_sm} CTAs of {tmem.allocated} columns; an SM has "
                     f"{COLUMNS}, so that one waits for another to end", "fewer CTAs per SM")  # fmt: skip
    for role in plan.roles:
        if role.name in ("epilogue", "warpgroup") and (role.first_warp % 4 or role.warps % 4):
            yield Broken("tensor memory", f"{role.name} is no aligned warpgroup: warp w reads lanes 32 (w % 4) on")


def counts(plan: GemmPlan) -> Iterator[Broken]:
    boxes = {m.operand: m.box_bytes for m in plan.tensor_maps}
    for pipe in plan.pipelines:
        answers = pipe.name == "answers"
        if answers and not ANSWER == pipe.full.tx_bytes == constant(plan, "CLC_BYTES"):
            yield Broken("bytes", f"{pipe.full.name} waits for {pipe.full.tx_bytes} B, CLC_BYTES is "
                         f"{constant(plan, 'CLC_BYTES')}; an answer has {ANSWER}")  # fmt: skip
        if answers and any(r.offset % ANSWER for r in plan.smem.regions if r.name in pipe.buffers):
            yield Broken("shared memory", f"an answer of launch control is not on a multiple of {ANSWER}")
        for d in pipe.full.deliveries if not answers else ():
            if d.bytes_each != boxes.get(d.operand):
                yield Broken("bytes", f"{pipe.full.name} counts {d.bytes_each:,} B for a box of {d.operand.upper()}; "
                             f"the tensor map moves {boxes.get(d.operand):,}")  # fmt: skip
            tile = next(r for r in plan.smem.regions if r.name == d.operand)
            if d.copies % plan.cta_group or d.bytes != plan.cta_group * stage_tile(plan, tile):
                yield Broken("bytes", f"{d.operand.upper()} is delivered in {d.copies} boxes of {d.bytes_each:,} B to "
                             f"{plan.cta_group} CTAs; each holds {stage_tile(plan, tile):,}")  # fmt: skip
        if pipe.full.tx_bytes and not answers:
            tiles = plan.cta_group * sum(stage_tile(plan, r) for r in plan.smem.regions if r.name in pipe.buffers)
            if pipe.full.tx_bytes != tiles:
                yield Broken("bytes", f"{pipe.full.name} waits for {pipe.full.tx_bytes:,} B; a stage holds {tiles:,}")
            if pipe.full.tx_bytes != constant(plan, "STAGE_BYTES"):
                yield Broken("bytes", f"STAGE_BYTES is {constant(plan, 'STAGE_BYTES'):,}; {pipe.full.tx_bytes:,} are "
                             "delivered")  # fmt: skip
        for barrier in pipe.barriers:
            name = f"{barrier.name.upper()}_ARRIVALS"
            if barrier.arrivals > 1 and barrier.arrivals != constant(plan, name):
                yield Broken("bytes", f"{name} is {constant(plan, name)}; {barrier.arrivals} arrive")


def instruction(plan: GemmPlan) -> Iterator[Broken]:
    m, n, k = plan.mma_shape
    if m != 128 * plan.cta_group:
        yield Broken("tcgen05 shape", f"M = {m}, cta_group {plan.cta_group}; {128 * plan.cta_group} fills the lanes")
    step = 32 if plan.cta_group == 2 else 16
    if n % step or not step <= n <= 256:
        yield Broken("tcgen05 shape", f"N = {n}; a multiple of {step} up to 256")
    if k != DEPTHS[plan.kind] or k * plan.input.bytes != 32 * plan.input.packed:
        yield Broken("tcgen05 shape", f"K = {k} of {plan.input.name}; an MMA takes 32 bytes of each row")
    if n != plan.cta_tile[1]:
        yield Broken("tcgen05 shape", f"one MMA spans {n} columns of {plan.cta_tile[1]}")
    a, b = (FORMATS[plan.kind].get(d.name) for d in plan.inputs)
    if a is None or b is None:
        yield Broken("tcgen05 shape", f"kind::{plan.kind} takes no {plan.input_names}")
        return
    turned = (plan.layout[0] != "k") << 15 | (plan.layout[1] != "k") << 16
    if turned and plan.kind != "f16":
        yield Broken("tcgen05 shape", f"kind::{plan.kind} of {plan.input_names} is read along k only")
    scaled = plan.kind in SCALES
    result = (plan.scales is not None and plan.scales.name == "ue8m0") * UE8M0 if scaled else F32_ACCUMULATOR << 4
    want = result | a << 7 | b << 10 | turned | n // 8 << 17 | m // 16 << 24
    if constant(plan, "INSTRUCTION") != want:
        yield Broken("tcgen05 shape", f"INSTRUCTION is {constant(plan, 'INSTRUCTION'):#010x}; {m} x {n} x {k} of "
                     f"{plan.input_names} is {want:#010x}")  # fmt: skip


def scales(plan: GemmPlan) -> Iterator[Broken]:
    """Block scales: which, how many of them an MMA reads, and where they are copied to."""
    if (plan.scales is None) != (plan.kind not in SCALES):
        yield Broken("scales", f"kind::{plan.kind} {'has none' if plan.scales else 'needs some'}")
        return
    if plan.scales is None:
        return
    s, (_, n, k), (block_m, _, block_k) = plan.scales, plan.mma_shape, plan.cta_tile
    if (s.name, s.block) != SCALES[plan.kind]:
        yield Broken("scales", f"{s.name} per {s.block} for kind::{plan.kind}")
    if k != s.per_step * s.block or block_k != 4 * s.atoms * s.block:
        yield Broken("scales", f"{s.per_step} per MMA of K = {k} and {s.atoms} atoms per {block_k}, in blocks of "
                     f"{s.block}")  # fmt: skip
    if 4 % s.per_step or (plan.kind != "mxf8f6f4" and s.per_step == 1):
        yield Broken("scales", f"an MMA of kind::{plan.kind} reads {s.per_step} of an atom's four")
    if n % 128:
        yield Broken("scales", f"N = {n} cuts an atom of 128 rows")
    # A 128-row atom takes 4 columns; those of B for all N are needed in both CTAs of a pair.
    consumers = constant(plan, "NUM_CONSUMERS", 1)
    columns = 4 * s.atoms * (1 + n // 128)
    regions = [r for r in plan.tmem.regions if r.name.startswith("scales")]
    if [r.columns for r in regions] != [columns] * consumers:
        yield Broken("scales", f"{len(regions)} regions of tensor memory for {consumers} consumers; {columns} columns "
                     "each")  # fmt: skip
    first = constant(plan, "SCALE_TMEM")
    if [r.first for r in regions] != [first + c * constant(plan, "SCALE_COLUMNS") for c in range(len(regions))]:
        yield Broken("scales", f"regions start at {[r.first for r in regions]}; SCALE_TMEM is {first}")
    held = {"sfa": block_m // 128, "sfb": n // 128}
    for region in plan.smem.regions:
        if region.name in held and stage_tile(plan, region) != held[region.name] * s.atoms * 512:
            yield Broken("scales", f"a stage of {region.name} has {stage_tile(plan, region):,} B")
        if region.name in held and region.offset % 128:
            yield Broken("scales", f"{region.name} at {region.offset:,}; TMA writes to multiples of 128")


def transposed(plan: GemmPlan) -> Iterator[Broken]:
    """Operands contiguous along M or N: boxes of one swizzled row width, one behind another."""
    for operand, major in zip("ab", plan.layout, strict=True):
        if major == "k":
            continue
        m = next(t for t in plan.tensor_maps if t.operand == operand)
        if m.columns != major or m.rows != "k":
            yield Broken("descriptors", f"{m.name} is of [{m.rows}, {m.columns}]; {operand.upper()} is [k, {major}]")
        if m.box_columns * m.element_bytes != 128 or m.box_columns != constant(plan, "BOX_MN"):
            yield Broken("descriptors", f"{m.name} moves {m.box_columns} columns; a swizzled row holds "
                         f"{128 // m.element_bytes}")  # fmt: skip
        if m.box_rows != plan.cta_tile[2]:
            yield Broken("descriptors", f"{m.name} moves {m.box_rows} rows of k of {plan.cta_tile[2]}")
