"""One kernel per instruction, the same for the card and the emulator: each thread takes three 64-bit words, cuts its
operands out of their low bits, executes the instruction and stores the result.

`INSTRUCTIONS` lists forms that sm_90a has; `inputs` gives words full of edges: zeros of both signs, infinities, NaNs,
subnormals, extremes of every integer and float type, neighbours of powers of two, and random bits.
"""

from __future__ import annotations

import hashlib
import itertools
from functools import cache

import numpy as np

THREADS, BLOCKS = 128, 16
COUNT = THREADS * BLOCKS

_WIDTH = {"b16": 16, "b32": 32, "b64": 64}


def _conversions():
    floats, integers = ("f64", "f32", "f16"), ("s64", "u64", "s32", "u32", "s16", "u16", "s8", "u8")
    for f, i in itertools.product((*floats, "bf16"), integers):
        for r in ("rni", "rzi", "rmi", "rpi"):
            yield f"cvt.{r}.{i}.{f}"
    for f, i in itertools.product(floats, integers):
        for r in ("rn", "rz", "rm", "rp"):
            yield f"cvt.{r}.{f}.{i}"
    for r in ("rn", "rz", "rm", "rp"):
        yield f"cvt.{r}.f32.f64"
        yield f"cvt.{r}.f16.f64"
        yield f"cvt.{r}.f16.f32"
    for r, i in itertools.product(("rn", "rz", "rm", "rp"), ("s32", "u32", "s64", "u64", "s16", "u16", "s8", "u8")):
        yield f"cvt.{r}.bf16.{i}"
    yield from ("cvt.rn.bf16.f32", "cvt.rz.bf16.f32", "cvt.rn.relu.bf16.f32", "cvt.rn.relu.f16.f32")
    yield from ("cvt.rna.tf32.f32", "cvt.rn.tf32.f32", "cvt.rz.tf32.f32", "cvt.rn.relu.tf32.f32")
    yield from ("cvt.f64.f32", "cvt.f64.f16", "cvt.f32.f16", "cvt.f32.bf16", "cvt.ftz.f32.f16", "cvt.sat.f32.f32")
    for r, i in itertools.product(("rni", "rzi", "rmi", "rpi"), ("f64", "f32", "f16")):
        yield f"cvt.{r}.{i}.{i}"
    for a, b in itertools.permutations(integers, 2):
        yield f"cvt.sat.{a}.{b}" if a != b and not (a[1:] > b[1:] and a[0] == b[0]) else f"cvt.{a}.{b}"


def _pairs():
    """Two floats to one packed word: (instruction, result, operands)."""
    for t in ("f16x2", "bf16x2"):
        for m in ("rn", "rz", "rn.relu", "rz.relu"):
            yield f"cvt.{m}.{t}.f32", "b32", ("b32", "b32")
    for t in ("e4m3x2", "e5m2x2"):
        for m in ("rn.satfinite", "rn.satfinite.relu"):
            yield f"cvt.{m}.{t}.f32", "b16", ("b32", "b32")
            yield f"cvt.{m}.{t}.f16x2", "b16", ("b32",)
        for m in ("rn", "rn.relu"):
            yield f"cvt.{m}.f16x2.{t}", "b32", ("b16",)
    for t in ("s8", "u8", "s16", "u16"):
        yield f"cvt.pack.sat.{t}.s32" + (".b32" if t[1:] == "8" else ""), "b32", ("b32",) * (3 if t[1:] == "8" else 2)


def _arithmetic():
    for t in ("f32", "f64"):
        for r in ("rn", "rz", "rm", "rp"):
            for op in ("add", "sub", "mul", "div"):
                yield f"{op}.{r}.{t}", t, 2
            yield f"fma.{r}.{t}", t, 3
            yield f"sqrt.{r}.{t}", t, 1
            yield f"rcp.{r}.{t}", t, 1
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        yield f"fma.rn.{t}", t, 3
        yield f"fma.rn.relu.{t}", t, 3
        for op in ("min", "max", "min.NaN", "max.NaN", "max.xorsign.abs", "add.rn", "sub.rn", "mul.rn"):
            yield f"{op}.{t}", t, 2
        yield f"neg.{t}", t, 1
        yield f"abs.{t}", t, 1
    for op in ("add", "sub", "mul"):
        for t in ("f16", "f16x2"):
            yield f"{op}.sat.{t}", t, 2
            yield f"{op}.ftz.{t}", t, 2
        yield f"{op}.ftz.f32", "f32", 2
        yield f"{op}.sat.f32", "f32", 2
    for op in ("min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32", "min.f64", "max.f64"):
        yield op, op[-3:], 2
    yield from (("copysign.f32", "f32", 2), ("copysign.f64", "f64", 2))
    for t in ("s16", "u16", "s32", "u32", "s64", "u64"):
        for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
            yield f"{op}.{t}", t, 2
        yield f"mad.lo.{t}", t, 3
        yield f"mad.hi.{t}", t, 3
    for t in ("s32", "u32"):
        yield f"mad24.lo.{t}", t, 3
        yield f"mul24.hi.{t}", t, 2
        yield f"sad.{t}", t, 3
        yield f"dp4a.{t}.{t}", t, 3
        yield f"dp2a.hi.{t}.{t}", t, 3
    yield from (("add.sat.s32", "s32", 2), ("sub.sat.s32", "s32", 2), ("mad.hi.sat.s32", "s32", 3))
    for t in ("b32", "b64"):
        yield from ((f"popc.{t}", t, 1), (f"clz.{t}", t, 1), (f"brev.{t}", t, 1), (f"cnot.{t}", t, 1))
        yield f"bfind.u{t[1:]}", t, 1
        yield f"bfind.shiftamt.s{t[1:]}", t, 1
        yield f"shl.{t}", t, 2
    for t in ("s32", "u32", "s64", "u64"):
        yield f"shr.{t}", t, 2
        yield f"bfe.{t}", t, 3
    for d, m in itertools.product("lr", ("wrap", "clamp")):
        yield f"shf.{d}.{m}.b32", "b32", 3
    yield "lop3.b32.96", "b32", 3
    yield from ((f"prmt.b32{m}", "b32", 3) for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"))


# Operands that hold a shift count, a bit position or a length are 32-bit whatever the type says.
_COUNTS = {"shl": (1,), "shr": (1,), "bfe": (1, 2)}
# Results that are 32-bit whatever the type says.
_SHORT_RESULT = ("popc", "clz", "bfind")


def _storage(t: str) -> str:
    """The register type that holds a PTX type."""
    if t in ("f16x2", "bf16x2", "tf32"):
        return "b32"
    bits = int(t.lstrip("bsuftx")) if t != "bf16" else 16
    return f"b{max(bits, 16)}"


@cache
def forms() -> list[tuple[str, str, tuple[str, ...]]]:
    """(instruction, storage of the result, storage of the operands), in a fixed order."""
    made = []
    for text in _conversions():
        to, source = text.split(".")[-2:]
        made.append((text, _storage(to), (_storage(source),)))
    made += list(_pairs())
    for text, t, n in _arithmetic():
        name = text.split(".")[0]
        operands = [_storage(t)] * n
        for i in _COUNTS.get(name, ()):
            operands[i] = "b32"
        result = "b32" if name in _SHORT_RESULT else _storage(t)
        made.append((text, result, tuple(operands)))
    return list(dict.fromkeys(made))


def kernel(name: str, text: str, result: str, operands: tuple[str, ...]) -> str:
    """The PTX of one kernel."""
    words = ("%a", "%b", "%c")[: len(operands)]
    lines = [f".visible .entry {name}(.param .u64 out, .param .u64 in) {{", ".reg .b64 %o, %i, %n, %a, %b, %c, %w;"]
    lines += [".reg .b32 %t, %k, %h;", f".reg .{result} %d;"]
    lines += [f".reg .{kind} %x{i};" for i, kind in enumerate(operands)]
    lines += ["ld.param.u64 %o, [out];", "ld.param.u64 %i, [in];", "mov.u32 %t, %tid.x;", "mov.u32 %k, %ctaid.x;"]
    lines += [f"mad.lo.u32 %t, %k, {THREADS}, %t;", "mul.wide.u32 %n, %t, 24;", "add.u64 %i, %i, %n;"]
    lines += [f"ld.global.b64 {w}, [%i+{8 * j}];" for j, w in enumerate(words)]
    for i, (kind, w) in enumerate(zip(operands, words, strict=True)):
        lines.append(f"mov.b64 %x{i}, {w};" if kind == "b64" else f"cvt.u{kind[1:]}.u64 %x{i}, {w};")
    given = ", ".join(f"%x{i}" for i in range(len(operands)))
    if text.startswith("lop3"):
        text, given = "lop3.b32", given + ", 0x96"
    lines.append(f"{text} %d, {given};")
    lines.append("mov.b64 %w, %d;" if result == "b64" else f"cvt.u64.u{result[1:]} %w, %d;")
    lines += ["mul.wide.u32 %n, %t, 8;", "add.u64 %o, %o, %n;", "st.global.b64 [%o], %w;", "ret;", "}"]
    return "\n".join(lines)


def module(number: int) -> str:
    """A module with the kernel `k` of form `number`."""
    return ".version 9.0\n.target sm_90a\n.address_size 64\n" + kernel("k", *forms()[number]) + "\n"


def defined(text: str, words: np.ndarray) -> np.ndarray:
    """bool [COUNT]: where PTX says what comes out.

    Dividing an integer by zero, or its minimum by -1, is not defined; bfe is for positions and lengths of 0..255.
    """
    name, t = text.split(".")[0], text.split(".")[-1]
    if name == "bfe":
        return ((words[:, 1:] & np.uint64(0xFFFFFFFF)) <= 255).all(1)
    if name not in ("div", "rem") or t[0] not in "su":
        return np.ones(len(words), bool)
    bits = int(t[1:])
    a, b = ((words[:, i] & np.uint64((1 << bits) - 1)) for i in (0, 1))
    overflow = (a == 1 << (bits - 1)) & (b == (1 << bits) - 1) & (t[0] == "s")
    return (b != 0) & ~overflow


def digest(text: str, words: np.ndarray, results: np.ndarray) -> str:
    """Of the defined results of an instruction."""
    return hashlib.sha256(np.where(defined(text, words), results, np.uint64(0)).tobytes()).hexdigest()[:16]


def _edges(bits: int, exponent: int, fraction: int) -> list[int]:
    """Bit patterns of a float type at which something changes."""
    top, one = (1 << exponent) - 1, 1 << fraction
    bias = top >> 1
    fields = [0, 1, *(bias + i for i in (-1, 0, 1, 8, 15, 16, 31, 32, 63, 64))]
    fields += [bias - fraction, bias - fraction - 1, top - 1, top]
    parts = [0, 1, one >> 1, (one >> 1) + 1, one - 1]
    found = [f << fraction | p for f in fields if 0 <= f <= top for p in parts]
    return [v | s << (bits - 1) for v in found for s in (0, 1)]


def inputs() -> np.ndarray:
    """uint64 [COUNT, 3]. Each word holds an edge of one type in its low bits, or random bits."""
    rng = np.random.default_rng(20)
    pool = _edges(64, 11, 52) + _edges(32, 8, 23) + _edges(16, 5, 10) + _edges(16, 8, 7)
    for b in (8, 16, 32, 64):
        pool += [0, 1, 2, (1 << b) - 1, (1 << b) - 2, 1 << (b - 1), (1 << (b - 1)) - 1, (1 << (b - 1)) + 1]
    pool = np.array(sorted({v & (1 << 64) - 1 for v in pool}), np.uint64)
    words = rng.integers(0, 1 << 64, (COUNT, 3), np.uint64)
    chosen = pool[rng.integers(0, len(pool), (COUNT, 3))]
    high = rng.integers(0, 1 << 16, (COUNT, 3), np.uint64) << np.uint64(48)  # packs of two: what the upper half holds
    low = pool[rng.integers(0, len(pool), (COUNT, 3))] & np.uint64(0xFFFF)
    kind = rng.integers(0, 4, (COUNT, 3))
    pairs = (chosen & np.uint64(0xFFFF)) << np.uint64(16) | low | high
    result = np.where(kind == 0, words, np.where(kind == 1, pairs, chosen))
    # Every edge at least once as the first operand.
    result[: len(pool), 0] = pool
    small = rng.integers(0, 80, COUNT).astype(np.uint64)  # shift counts
    result[::3, 1] = np.where(rng.random(len(result[::3])) < 0.3, small[::3], result[::3, 1])
    return result
