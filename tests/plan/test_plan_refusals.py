"""One case per limit of the hardware: the arithmetic is told, and the way out really is one."""

import re

import pytest

from kgen.errors import PlanError
from kgen.plan import make_plan
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

HEAD = "kernel: gemm\narch: sm_90a\nname: x\n"

# text after HEAD; field; what; hint; the hint as assignments
CASES = {
    "box too tall": (
        "tile: {m: 128, n: 64}\nwarps: {consumers: 3}\npipeline: {stages: 2}\n",
        "tile.m",
        "3 consumers x 128 rows = 384 rows of A in one TMA box; a box has at most 256",
        "set tile.m: 64",
        ["tile.m=64"],
    ),
    "columns that fill no store box": (
        "tile: {n: 72}\n",
        "tile.n",
        "72 columns of bf16 are no whole number of 128-byte store boxes of 64 columns",
        "set tile.n: 64 or 128, or epilogue.store: direct",
        ["tile.n=64"],
    ),
    "columns that fill no store box, other end": (
        "tile: {n: 72}\n",
        "tile.n",
        "72 columns of bf16 are no whole number of 128-byte store boxes of 64 columns",
        "set tile.n: 64 or 128, or epilogue.store: direct",
        ["tile.n=128"],
    ),
    "columns that fill no store box, other store": (
        "tile: {n: 72}\n",
        "tile.n",
        "72 columns of bf16 are no whole number of 128-byte store boxes of 64 columns",
        "set tile.n: 64 or 128, or epilogue.store: direct",
        ["epilogue.store=direct"],
    ),
    "slices that cut a pattern": (
        "tile: {n: 24}\nepilogue: {store: direct}\ncluster: {size: 2, multicast: b}\n",
        "tile.n",
        "24 rows of B split over 2 CTAs leave slices that are no whole 8-row swizzle pattern",
        "nearest: 16",
        ["tile.n=16"],
    ),
    "more registers than launched": (
        "tile: {m: 64, n: 128}\nwarps: {consumers: 2, registers: {producer: 40, consumer: 240}}\n",
        "warps.registers",
        # 65,536 registers over 384 threads are 170, in steps of 8: 168.
        "128 x (40 + 2 x 240) = 66560 registers; 384 threads launch with 64512",
        "set consumer: 232",
        ["warps.registers.consumer=232"],
    ),
    "wgmma too wide for the launch": (
        "tile: {m: 64, n: 256}\nwarps: {consumers: 3, registers: {producer: 24, consumer: 160}}\n"
        "pipeline: {stages: 2}\n",
        "tile.n",
        # 65,536 / 512 threads = 128 at launch; (128 - 26) x 2 = 204 columns, in steps of 64: 192.
        "one wgmma of 256 columns names 128 registers and ptxas wants 154 at launch, before setmaxnreg; "
        "512 threads x 1 CTAs launch with 128",
        "set tile.n: 192, or fewer consumers or CTAs per SM",
        ["tile.n=192"],
    ),
    "accumulators too large": (
        "tile: {m: 128, n: 256}\n",
        "tile.n",
        # 160 threads may launch with 255 each: (255 - 56) x 2 / 2 = 199 columns, in steps of 64: 192.
        "a 128x256 accumulator takes 256 registers per thread and about 56 more are needed; "
        "warps.consumers leaves 255",
        "set tile.n: 192, or tile.m: 64",
        ["tile.n=192"],
    ),
    "accumulators too large, other way out": (
        "tile: {m: 128, n: 256}\n",
        "tile.n",
        "a 128x256 accumulator takes 256 registers per thread and about 56 more are needed; "
        "warps.consumers leaves 255",
        "set tile.n: 192, or tile.m: 64",
        ["tile.m=64"],
    ),
    "accumulators too large for two consumers": (
        "tile: {m: 128, n: 192}\nwarps: {consumers: 2}\npipeline: {stages: 3}\n",
        "tile.n",
        # 9 warps are 3 in a partition: 16,384 / 96 threads = 170, in steps of 8: 168. (168 - 56) x 2 / 2 = 112 columns,
        # in steps of 64: 64. With 128, which was the way out once, ptxas spills.
        "a 128x192 accumulator takes 192 registers per thread and about 56 more are needed; "
        "warps.consumers leaves 168",
        "set tile.n: 64, or tile.m: 64",
        ["tile.n=64"],
    ),
    "a producer of too few registers": (
        "cluster: {size: 2, multicast: b}\nwarps: {consumers: 2, registers: {producer: 24, consumer: 232}}\n",
        "warps.registers.producer",
        "a producer that walks the tiles of a cluster keeps more than 24 registers in use",
        "set producer: 32",
        ["warps.registers.producer=32"],
    ),
    "too many stages": (
        "tile: {m: 128, n: 128}\npipeline: {stages: 9}\n",
        "pipeline.stages",
        # 256 rows x 64 x 2 B; 4 warps x 2 boxes x 16 rows x 128 B; 2 x 9 barriers of 8 B.
        "9 stages x 32,768 B + 16,528 B of staging and barriers = 311,440 B of shared memory; "
        "sm_90a has 232,448 B",
        "at most 6 fit",
        ["pipeline.stages=6"],
    ),
    "too many stages for two CTAs": (
        "tile: {m: 64, n: 128}\npipeline: {stages: 5}\nschedule: {ctas_per_sm: 2}\n",
        "pipeline.stages",
        # (233,472 / 2) - 1,024 each
        "5 stages x 24,576 B + 16,464 B of staging and barriers = 139,344 B of shared memory; "
        "sm_90a has 115,712 B for each of 2 CTAs per SM",
        "at most 4 fit",
        ["pipeline.stages=4"],
    ),
}


def refusals(text):
    with pytest.raises(PlanError) as caught:
        make_plan(parse_spec(text).spec)
    assert caught.value.exit_code == 2
    return caught.value.refusals


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_told_with_its_arithmetic(case):
    text, field, what, hint, _ = CASES[case]
    assert [(r.field, r.what, r.hint) for r in refusals(HEAD + text)] == [(field, what, hint)]


@pytest.mark.parametrize("case", CASES)
def test_the_way_out_is_feasible(case):
    text, _, _, hint, way_out = CASES[case]
    for assignment in way_out:
        field, _, value = assignment.partition("=")
        words = f"{field.rpartition('.')[2]}: {value}" if "set" in hint else value
        assert words in hint or f" or {value}" in hint, "the case does not follow the hint"
    make_plan(parse_spec(set_values(HEAD + text, way_out)).spec)


def test_one_more_stage_than_suggested_does_not_fit():
    text, *_ = CASES["too many stages"]
    assert refusals(set_values(HEAD + text, ["pipeline.stages=7"]))[0].hint == "at most 6 fit"


def test_all_limits_come_at_once_and_are_located():
    text = HEAD + "tile: {m: 128, n: 72}\npipeline: {stages: 32}\n"
    loaded = parse_spec(text, "f.yaml")
    with pytest.raises(PlanError) as caught:
        make_plan(loaded.spec)
    located = str(loaded.located(caught.value)).splitlines()
    assert [re.match(r"f\.yaml:(\d+:\d+): ([\w.]+): ", line).groups() for line in located] == [
        ("4:19", "tile.n"),
        ("5:20", "pipeline.stages"),
    ]


def test_a_refusal_about_a_field_that_is_not_written_points_at_its_section():
    loaded = parse_spec(HEAD + "tile: {m: 128}\n", "f.yaml")
    with pytest.raises(PlanError) as caught:
        make_plan(loaded.spec)
    assert str(loaded.located(caught.value)).startswith("f.yaml:4:1: tile.n: ")
