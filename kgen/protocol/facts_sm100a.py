"""What must hold of a plan for Blackwell: tensor memory, the instruction descriptor, counts.

Sources: PTX ISA, tcgen05 sections (allocation, instruction descriptor, shapes by kind and cta_group).
"""

from __future__ import annotations

from collections.abc import Iterator

from kgen.plan.common import GemmPlan
from kgen.protocol.fact import Broken, constant, register_split, stage_tile

COLUMNS = 512  # of tensor memory per SM
FORMATS = {"fp16": 0, "bf16": 1}  # kind::f16
F32_ACCUMULATOR = 1
ANSWER = 16  # bytes of cluster launch control's


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
            if d.copies != plan.cta_group:
                yield Broken("bytes", f"{d.operand.upper()} is delivered by {d.copies} CTAs of {plan.cta_group}")
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
    if k * plan.input.bytes != 32:
        yield Broken("tcgen05 shape", f"K = {k} of {plan.input.name}; an MMA takes 32 bytes of each row")
    if n != plan.cta_tile[1]:
        yield Broken("tcgen05 shape", f"one MMA spans {n} columns of {plan.cta_tile[1]}")
    form = FORMATS[plan.input.name]
    want = F32_ACCUMULATOR << 4 | form << 7 | form << 10 | n // 8 << 17 | m // 16 << 24
    if constant(plan, "INSTRUCTION") != want:
        yield Broken("tcgen05 shape", f"INSTRUCTION is {constant(plan, 'INSTRUCTION'):#010x}; {m} x {n} x {k} of "
                     f"{plan.input.name} is {want:#010x}")  # fmt: skip
