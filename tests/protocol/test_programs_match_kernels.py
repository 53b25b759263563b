"""The programs of sm_90a say what the templates say: same barriers, counts, bytes, waits and order, role by role."""

import pytest
from drawn_specs import drawn_specs
from extraction import kernel_words, program_words
from variants import named_plans

from kgen.protocol import program_of, tiles_per_cta
from kgen.render import render_kernel

PLANS = named_plans("sm_90a")
# Where a kernel computes one tile or one k tile, it says so without a loop.
OPTIONAL = {"tile": lambda plan: plan.schedule != "persistent", "k": lambda plan: plan.k_tiles == 1}


def without_single_loops(words, plan):
    left_out = [var for var, single in OPTIONAL.items() if single(plan)]
    out, stack = [], []
    for w in words:
        if w[0] == "loop":
            stack.append(w[1] in left_out)
            if not stack[-1]:
                out.append(w)
        elif w[0] != "end" or not stack.pop():
            out.append(w)
    return out


def initialising(words):
    return [w for w in words if w[0] == "init"]


def rest(words):
    return [w for w in words if w[0] != "init"]


@pytest.mark.parametrize("name", PLANS)
def test_every_call_is_in_the_program_and_in_this_order(name):
    compare(PLANS[name])


def test_so_it_is_for_random_specs():
    for drawn in drawn_specs():
        compare(drawn.plan)


def compare(plan):
    program, kernel = program_of(plan), kernel_words(render_kernel(plan), plan)
    first, *others = program.roles
    told = program_words(program, first)
    assert initialising(told) == initialising(next(iter(kernel.values())))
    assert not any(initialising(program_words(program, r)) for r in others)
    compared = set()
    for role in program.roles:
        words = rest(without_single_loops(program_words(program, role), plan))
        if role.name == "idle":
            everybody = [w for w in kernel["producer"] if w == ("cluster",)] or [("cta",)]
            assert words == everybody
            continue
        kind = role.name.split()[0]
        compared.add(kind)
        assert words == rest(kernel[kind])
    assert compared == set(kernel)


@pytest.mark.parametrize("name", PLANS)
def test_bytes_of_the_copies_are_those_of_the_boxes(name):
    plan = PLANS[name]
    boxes = {m.operand: m.box_bytes for m in plan.tensor_maps}
    from kgen.protocol.program import AsyncLoad, walk

    for role in program_of(plan).roles:
        for op in walk(role.body):
            if isinstance(op, AsyncLoad):
                assert op.bytes == boxes[op.into.buffer]


def test_the_launcher_refuses_what_the_checker_leaves_out():
    for plan in PLANS.values():
        assert program_of(plan).least == {"k_tiles": 1}
    from variants import variant_project

    assert "args.k < 1) return cudaErrorInvalidValue" in variant_project("fp16")["fp16.cu"]


def test_tiles_follow_the_schedule():
    assert {tiles_per_cta(p) for p in PLANS.values() if p.schedule == "persistent"} == {(0, 1, 2, 3)}
    assert {tiles_per_cta(p) for p in PLANS.values() if p.schedule != "persistent"} == {(1,)}


CHANGES = {  # what a template might say instead, and the preset whose kernel it changes
    "a wait's parity": ("step9", "ring.phase ^ 1)", "ring.phase)"),
    "a wgmma wait": ("step9", "wgmma_wait<1>();", "wgmma_wait<0>();"),
    "the stage released": ("step9", "0) release(smem.empty[previous])", "0) release(smem.empty[ring.stage])"),
    "a missing cluster barrier": ("step9", "cluster_sync();  // no CTA may exit", "// no CTA may exit"),
    "an arrival count": ("step9", "smem.full[stage], 1);", "smem.full[stage], 2);"),
    "a refill": ("step5", "load_k_tile(smem, previous,", "load_k_tile(smem, ring.stage,"),
    "a __syncthreads": ("step2", "wgmma_wait<0>();\n    __syncthreads();", "wgmma_wait<0>();"),
    "the order of copies": ("step4", "mbarrier_arrive_expect_tx(smem.full[stage], STAGE_BYTES);\n", ""),
    "a store wait": ("step6", "bulk_wait_read<STAGING - 1>", "bulk_wait_read<0>"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_template_that_drifts_is_noticed(what):
    step, before, after = CHANGES[what]
    plan = PLANS[f"gemm_{step}"]
    source = render_kernel(plan)
    assert before in source
    changed = kernel_words(source.replace(before, after), plan)
    assert changed != kernel_words(source, plan)
