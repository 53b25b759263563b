"""Runs of instructions that are done at once give what the same instructions give one by one."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from kgen.emulator import blocks
from kgen.emulator.lanewise import signature
from kgen.emulator.launch import Device
from kgen.emulator.program import load
from kgen.errors import EmulatorError

sys.path.insert(0, str(Path(__file__).parents[2] / "device" / "instruction_truth"))
import instructions as ins

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
COPIES, THREADS = 3, 256  # eight warps; the third to come to a run is the first to do it at once


def both(monkeypatch, ptx: str, buffers):
    """What a kernel leaves in copies of its buffers: with runs, and one instruction at a time."""
    results = []
    for shortest in (blocks._SHORTEST, 10**9):
        monkeypatch.setattr(blocks, "_SHORTEST", shortest)
        load.cache_clear()
        copies = [b.copy() for b in buffers]
        Device(ptx).launch(1, THREADS, copies)
        results.append(copies)
    monkeypatch.undo()
    load.cache_clear()
    return results


def repeated(text: str, result: str, operands: tuple[str, ...]) -> str:
    """A kernel with copies of an instruction that do not depend on each other."""
    lines = [".visible .entry k(.param .u64 out, .param .u64 in) {", ".reg .b64 %o, %i, %n;", ".reg .b32 %t;"]
    setup = ["ld.param.u64 %o, [out];", "ld.param.u64 %i, [in];", "mov.u32 %t, %tid.x;"]
    setup += [f"mul.wide.u32 %n, %t, {24 * COPIES};", "add.u64 %i, %i, %n;"]
    setup += [f"mul.wide.u32 %n, %t, {8 * COPIES};", "add.u64 %o, %o, %n;"]
    head, lut = ("lop3.b32", ", 0x96") if text.startswith("lop3") else (text, "")
    for c in range(COPIES):
        lines += [f".reg .b64 %w{c};", f".reg .{result} %d{c};"]
        for i, kind in enumerate(operands):
            lines += [f".reg .b64 %a{c}_{i};", f".reg .{kind} %x{c}_{i};"]
            setup.append(f"ld.global.b64 %a{c}_{i}, [%i+{8 * (3 * c + i)}];")
            setup.append(
                f"mov.b64 %x{c}_{i}, %a{c}_{i};" if kind == "b64" else f"cvt.u{kind[1:]}.u64 %x{c}_{i}, %a{c}_{i};"
            )
        given = ", ".join(f"%x{c}_{i}" for i in range(len(operands)))
        setup.append(f"{head} %d{c}, {given}{lut};")
        setup.append(f"mov.b64 %w{c}, %d{c};" if result == "b64" else f"cvt.u64.u{result[1:]} %w{c}, %d{c};")
    stores = [f"st.global.b64 [%o+{8 * c}], %w{c};" for c in range(COPIES)]
    return HEAD + "\n".join([*lines, *setup, *stores, "ret;", "}"])


FORMS = ins.forms()


@pytest.mark.parametrize("part", range(8))
def test_every_form_is_the_same_for_many_at_once(part, monkeypatch):
    words = np.random.default_rng(part).permutation(ins.inputs())[: THREADS * COPIES].copy()
    for text, result, operands in FORMS[part::8]:
        ptx = repeated(text, result, operands)
        (at_once, _), (singly, _) = both(monkeypatch, ptx, [np.zeros((THREADS, COPIES), np.uint64), words])
        assert (at_once == singly).all(), text
        assert at_once.any() or not singly.any()


def random_kernel(rng: random.Random) -> str:
    """Eight words per lane in registers, changed by arithmetic, under guards and through memory that lanes share."""
    names = [f"%r{i}" for i in range(8)]
    lines = []

    def pick():
        return rng.choice(names)

    for _ in range(60):
        kind = rng.randrange(12)
        at = 4 * rng.randrange(8)
        if kind < 4:
            op = rng.choice(["add.u32", "xor.b32", "mul.lo.u32", "sub.s32", "min.s32"])
            lines.append(f"{op} {pick()}, {pick()}, {rng.choice([pick(), str(rng.randrange(1000))])};")
        elif kind == 4:
            lines.append(f"setp.lt.u32 %p{rng.randrange(2)}, {pick()}, {pick()};")
        elif kind == 5:
            lines.append(f"@{rng.choice(['', '!'])}%p{rng.randrange(2)} add.u32 {pick()}, {pick()}, {pick()};")
        elif kind == 6:
            lines.append(f"selp.b32 {pick()}, {pick()}, {pick()}, %p{rng.randrange(2)};")
        elif kind == 7:
            lines.append(f"st.shared.u32 [%s+{at}], {pick()};")
        elif kind == 8:
            lines.append(f"ld.shared.u32 {pick()}, [%s+{at}];")
        elif kind == 9:
            lines.append(f"st.global.u32 [%g+{at}], {pick()};")
        elif kind == 10:
            lines.append(f"ld.global.u32 {pick()}, [%g+{at}];")
        else:
            lines.append(f"ld.shared.v2.u32 {{{names[0]}, {names[1]}}}, [%s+{at & ~7}];")
    # The places of neighbouring lanes overlap; those of warps do not.
    start = [f"mov.u32 {r}, %t;" for r in names] + [f"st.shared.u32 [%s+{4 * i}], %t;" for i in range(8)]
    return HEAD + "\n".join([
        ".visible .entry k(.param .u64 out) {", ".reg .b32 %r<8>;", ".reg .b32 %t, %u, %s;", ".reg .b64 %g, %n;",
        ".reg .pred %p<2>;", ".shared .align 16 .b8 room[4096];", "ld.param.u64 %g, [out];", "mov.u32 %t, %tid.x;",
        "shr.u32 %u, %t, 5;", "mul.lo.u32 %u, %u, 320;", "and.b32 %s, %t, 31;", "shl.b32 %s, %s, 3;",
        "add.u32 %u, %u, %s;", "cvt.u64.u32 %n, %u;", "add.u64 %g, %g, %n;", "mov.u32 %s, room;", "add.u32 %s, %s, %u;",
        "setp.lt.u32 %p0, %t, 77;", "setp.lt.u32 %p1, %t, 5;", *start, *lines,
        *(f"st.global.u32 [%g+{4 * i}], {r};" for i, r in enumerate(names)), "ret;", "}",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_runs(seed, monkeypatch):
    (at_once,), (singly,) = both(monkeypatch, random_kernel(random.Random(seed)), [np.zeros(2000, np.uint32)])
    assert (at_once == singly).all() and singly.any()


@pytest.mark.parametrize("form", ["x1", "x2", "x4", "x4.trans", "x2.trans"])
def test_stores_of_matrices(form, monkeypatch):
    count = int(form[1])
    names = [f"%r{i}" for i in range(4 * count)]
    stores = [
        f"stmatrix.sync.aligned.m8n8.{form}.shared.b16 [%s+{512 * i}], {{{', '.join(names[i::4])}}};" for i in range(4)
    ]
    loads = []
    for i in range(4 * count):
        at = 512 * (i // count) + 128 * (i % count)
        loads += [f"ld.shared.u32 {names[i]}, [%w+{at}];", f"st.global.u32 [%g+{1024 * i}], {names[i]};"]
    ptx = HEAD + "\n".join([
        ".visible .entry k(.param .u64 out) {", f".reg .b32 %r<{4 * count}>;", ".reg .b32 %t, %l, %b, %s, %w;",
        ".reg .b64 %g, %n;", ".shared .align 16 .b8 room[16384];", "ld.param.u64 %g, [out];", "mov.u32 %t, %tid.x;",
        "and.b32 %l, %t, 31;", "shr.u32 %b, %t, 5;", "mul.lo.u32 %b, %b, 2048;", "mov.u32 %s, room;",
        "add.u32 %b, %b, %s;", "mad.lo.u32 %s, %l, 16, %b;", "mad.lo.u32 %w, %l, 4, %b;",
        "mul.wide.u32 %n, %t, 4;", "add.u64 %g, %g, %n;",
        *(f"mad.lo.u32 {r}, %t, {7919 + 2 * i}, {i};" for i, r in enumerate(names)), *stores, *loads, "ret;", "}",
    ])  # fmt: skip
    (at_once,), (singly,) = both(monkeypatch, ptx, [np.zeros((4 * count, THREADS), np.uint32)])
    assert (at_once == singly).all() and singly.any(1).all()


def test_alike_instructions_are_one_call():
    program = load(repeated("add.rn.f32", "b32", ("b32", "b32")))
    levels = blocks._levels(program, 0, len(program.code) - 2)
    sizes = [len(members) for level in levels for members in level.values()]
    assert sizes.count(2 * COPIES) == 2  # loads from one base, conversions
    assert sizes.count(COPIES) == 3  # sums, conversions back, stores


def test_what_is_wrong_in_a_run_is_said_by_the_instruction_that_does_it(monkeypatch):
    """The fourth of four stores leaves its buffer, for one warp that is not among the first to come."""
    body = "\n".join(f"st.global.u32 [%g+{1024 * i}], %t;" for i in range(4))
    ptx = HEAD + (
        ".visible .entry k(.param .u64 out) { .reg .b32 %t; .reg .b64 %g, %n; ld.param.u64 %g, [out];\n"
        f"mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 4; add.u64 %g, %g, %n;\n{body}\nret; }}"
    )
    said = []
    for shortest in (blocks._SHORTEST, 10**9):
        monkeypatch.setattr(blocks, "_SHORTEST", shortest)
        load.cache_clear()
        with pytest.raises(EmulatorError, match="out of bounds") as caught:
            Device(ptx).launch(1, THREADS, [np.zeros(1000, np.uint32)])
        said.append(str(caught.value))
    load.cache_clear()
    assert said[0] == said[1] and "+3072" in said[0]


def test_functions_differ_by_what_they_hold():
    def made(n):
        return lambda p: p + n

    assert signature(made(1)) == signature(made(1))
    assert signature(made(1)) != signature(made(2))
    assert signature(made(1)) != signature(made(True))
    assert signature(made([1, 2])) == signature(made([1, 2]))
    assert signature(made(object())) != signature(made(object()))
