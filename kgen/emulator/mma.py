"""Arithmetic of one matrix instruction: D = A @ B^T + C on codes, bit for bit as the tensor cores do it.

Nothing of this is documented by the vendor. The model is the one of MMA-Sim (microsoft/MMA-Sim;
arXiv 2511.10909), reported there to agree bitwise with H100 and B200; arXiv 2512.07004 is a second study
of the same units. What it says of wgmma and mma.sync was measured on an H200, which corrected it in three
points (docs/hardware-facts.md): E_FLOOR, the sign of zero, and fp8 mma.sync.

For one element of D, with L products and the accumulator c as terms:

  1. every factor is significand * 2^exponent, 1 <= |significand| < 2; subnormals keep the exponent of the
     smallest normal. A product's exponent is the sum of its factors' (and of its block scales'); it is
     not renormalised.
  2. E is the largest exponent of the terms that are not zero, and at least E_FLOOR.
  3. every term is truncated toward zero to F fractional bits relative to 2^E.
  4. the truncated terms are added exactly.
  5. the sum is rounded once: to f32 toward zero, to f16 to nearest even. wgmma with fp8 inputs keeps 13
     fraction bits of f32. A zero is +0, even when a negative sum underflowed.

Successive K steps chain through D, one call per instruction. Hopper has no fp8 form of mma.sync: see
`_mma_sync_fp8` for the instructions that the assembler makes of one.

Not covered by that evidence, so inferred: `scale_c`, fp6 and mixed fp8/fp4 inputs, a sum just below 2^128
(here the largest finite value; from 2^128 on it is infinity), and the three corrections on tcgen05.

The float64 arithmetic below is exact: every intermediate is an integer below 2^53 times a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kgen.emulator import formats
from kgen.emulator.formats import Format
from kgen.errors import EmulatorError

# The exponent of a sum whose terms are all zero or smaller. Measured: with bf16 and tf32 products around
# 2^-140, no other value explains the results. Visible only in f32 results below 2^-124.
E_FLOOR = -133

_ZERO_EXPONENT = -8000  # of a zero factor; the sum of two must fit in 16 bits
_F32_NAN, _F16_NAN = 0x7FFFFFFF, 0x7FFF
_INTEGERS = ("s8", "u8", "b1")


@dataclass(frozen=True)
class Numerics:
    """How an instruction adds: fractional bits kept, stored fraction bits of an f32 result, and how many
    products are summed exactly before they become one term (1, or 16 for the packed 4-bit kinds)."""

    fraction_bits: int
    f32_fraction: int = 23
    group: int = 1


def numerics(unit: str, a_format: Format, packed: bool = False) -> Numerics:
    """The model of `unit`: "wgmma", "tcgen05" or "mma.sync" (on Hopper). packed: kind::mxf4/mxf4nvf4."""
    if unit not in ("wgmma", "tcgen05", "mma.sync"):
        raise EmulatorError(f"no arithmetic is known for {unit}")
    if unit == "wgmma" and a_format.bits == 8:
        return Numerics(13, 13)
    if packed:
        return Numerics(35, group=16)
    return Numerics(25)


@dataclass(frozen=True)
class Scales:
    """Block scales: codes a [M, K/block] and b [N, K/block] of `format` ("ue8m0" or "ue4m3")."""

    a: np.ndarray
    b: np.ndarray
    format: str
    block: int


def mma(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    a_format: str,
    b_format: str,
    d_format: str,
    *,
    unit: str = "wgmma",
    arithmetic: str = "exact",
    scales: Scales | None = None,
    packed: bool = False,
    negate_a: bool = False,
    negate_b: bool = False,
    scale_c: int = 0,
    saturate: bool = False,
) -> np.ndarray:
    """Codes of D [M, N]: uint32 for "f32" and "s32", uint16 for "f16".

    a [M, K], b [N, K]: element codes (unsigned integer arrays) of "f16", "bf16", "tf32", "e4m3", "e5m2",
    "e2m3", "e3m2", "e2m1", "s8", "u8" or "b1" (one 0/1 per element, multiplied by and).
    c [M, N]: codes like D, or None for zero (scale-d = 0, enable-input-d = false).
    arithmetic: "exact" is the model above; "fast" is a float64 product rounded once to nearest.
    scale_c: c enters as c * 2^-scale_c (tcgen05's scale-input-d). saturate: clamp s32 (`.satfinite`).
    Raises EmulatorError for operands that do not fit together.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise EmulatorError(f"mma: A is {a.shape} and B {b.shape}, need [M, K] and [N, K]")
    if c is not None and np.shape(c) != (a.shape[0], b.shape[0]):
        raise EmulatorError(f"mma: C is {np.shape(c)}, need {(a.shape[0], b.shape[0])}")
    if arithmetic not in ("exact", "fast"):
        raise EmulatorError(f"mma: arithmetic {arithmetic} is neither exact nor fast")
    if a_format in _INTEGERS or b_format in _INTEGERS:
        return _integer(a, b, c, a_format, b_format, d_format, saturate)
    fa, fb = _format(a_format), _format(b_format)
    if d_format not in ("f32", "f16"):
        raise EmulatorError(f"mma: {a_format} x {b_format} cannot accumulate in {d_format}")
    model = numerics(unit, fa, packed)
    va = formats.decode(a, fa) * (-1.0 if negate_a else 1.0)
    vb = formats.decode(b, fb) * (-1.0 if negate_b else 1.0)
    if unit == "mma.sync" and fa.bits == 8 and arithmetic == "exact":
        return _mma_sync_fp8(va, vb, c, d_format)
    vc, ec = _accumulator(c, d_format, (a.shape[0], b.shape[0]), scale_c)
    if arithmetic == "fast":
        if scales is not None:
            va, vb = va * _expanded(scales.a, scales, va), vb * _expanded(scales.b, scales, vb)
        with np.errstate(all="ignore"):
            return _nearest(va @ vb.T + vc, d_format)
    special = _special(va, vb, vc, scales)
    va, vb = (np.where(np.isfinite(v), v, 0.0) for v in (va, vb))
    ea, eb = _exponents(a, fa), _exponents(b, fb)
    if model.group == 1:
        if scales is not None:
            va, ea = _scaled(va, ea, scales.a, scales)
            vb, eb = _scaled(vb, eb, scales.b, scales)
        total = _sum_products(va, ea, vb, eb, np.where(np.isfinite(vc), vc, 0.0), ec, model)
    else:
        total = _sum_groups(va, vb, np.where(np.isfinite(vc), vc, 0.0), ec, scales, model)
    if special is not None:
        total = np.where(np.isfinite(special), total, special)
    if d_format == "f32":
        return _positive_zero(_toward_zero(total, model.f32_fraction))
    return _positive_zero(_nearest(total, "f16"))


def _mma_sync_fp8(va: np.ndarray, vb: np.ndarray, c: np.ndarray | None, d_format: str) -> np.ndarray:
    """fp8 mma.sync on Hopper: factors become f16, which holds them all, and two f16 instructions add them up
    from zero; C is added last, by an ordinary addition to nearest.

    A 32-bit operand register holds four consecutive k. Unpacking it to f16 pairs sends the lower two to the
    first instruction and the upper two to the second. Read from the code that ptxas makes of m16n8k32 (and,
    with half the K, of m16n8k16) for sm_90a; f32 results measured, f16 results not yet.
    """
    fa, fb = (formats.encode(v, formats.F16) for v in (va, vb))
    lower = np.arange(va.shape[1]) % 4 < 2
    products = None
    for part in (lower, ~lower):
        products = mma(fa[:, part], fb[:, part], products, "f16", "f16", d_format, unit="mma.sync")
    shape = products.shape
    with np.errstate(invalid="ignore"):  # infinities of both signs
        # float64 holds the sum exactly, or loses only what cannot change the nearest f32 or f16 value.
        total = _accumulator(products, d_format, shape, 0)[0] + _accumulator(c, d_format, shape, 0)[0]
    return _nearest(total, d_format)


def _format(name: str) -> Format:
    if name not in formats.FORMATS:
        raise EmulatorError(f"mma: operand format {name} is unknown")
    return formats.FORMATS[name]


@lru_cache(maxsize=16)
def _exponent_table(fmt: Format) -> np.ndarray:
    """int16 exponent of every code; zeros and non-finite codes far below all others."""
    table = fmt.table if fmt.signed or fmt is formats.UE8M0 else np.tile(fmt.table[: len(fmt.table) // 2], 2)
    usable = np.isfinite(table) & (table != 0)
    _, exponent = np.frexp(np.where(usable, table, 1.0))
    # All codes of ue8m0 are powers of two; it has no subnormals.
    least = -127 if fmt is formats.UE8M0 else fmt.min_exponent
    return np.where(usable, np.maximum(exponent - 1, least), _ZERO_EXPONENT).astype(np.int16)


def _exponents(codes: np.ndarray, fmt: Format) -> np.ndarray:
    return _exponent_table(fmt)[(codes >> fmt.shift) & ((1 << fmt.bits) - 1)]


def _accumulator(c, d_format: str, shape, scale_c: int) -> tuple[np.ndarray, np.ndarray]:
    """float64 values and int32 exponents of C."""
    if c is None:
        return np.zeros(shape), np.full(shape, _ZERO_EXPONENT, np.int32)
    if d_format == "f32":
        word = np.ascontiguousarray(c).view(np.uint32)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = word.view(np.float32).astype(np.float64)
        field = (word >> 23 & 255).astype(np.int32)
        exponent = np.where(values != 0, np.maximum(field, 1) - 127, _ZERO_EXPONENT)
    else:
        word = np.ascontiguousarray(c).view(np.uint16)
        values, exponent = formats.decode(word, formats.F16), _exponents(word, formats.F16).astype(np.int32)
    return values * 2.0**-scale_c, exponent - scale_c


def _expanded(codes: np.ndarray, scales: Scales, like: np.ndarray) -> np.ndarray:
    """float64 [rows, K]: the scale of every element."""
    rows, k = like.shape
    codes = np.asarray(codes)
    if codes.shape != (rows, k // scales.block) or k % scales.block:
        raise EmulatorError(f"mma: scales are {codes.shape}, need {(rows, k // scales.block)}")
    return np.repeat(formats.decode(codes, _format(scales.format)), scales.block, axis=1)


def _scaled(values, exponents, codes, scales: Scales):
    """Factors with their block scale's value and exponent worked in (scales that are powers of two)."""
    if scales.format != "ue8m0":
        raise EmulatorError(f"mma: {scales.format} scales are only for packed 4-bit operands")
    factor = _expanded(codes, scales, values)
    shift = np.repeat(_exponents(np.asarray(codes), formats.UE8M0), scales.block, axis=1)
    zero = exponents == _ZERO_EXPONENT
    return values * np.where(np.isnan(factor), 0.0, factor), np.where(zero, exponents, exponents + shift)


def _special(va, vb, vc, scales: Scales | None) -> np.ndarray | None:
    """None if everything is finite; else [M, N] that is inf or NaN exactly where the result is."""
    sa = sb = 1.0
    if scales is not None:
        sa, sb = _expanded(scales.a, scales, va), _expanded(scales.b, scales, vb)
    if all(np.isfinite(x).all() for x in (va, vb, vc, sa, sb)):
        return None
    # Finite factors count by sign only, so that nothing but real infinities can overflow. A NaN scale
    # makes every product of its block NaN.
    with np.errstate(invalid="ignore"):
        fa, fb = (np.where(np.isfinite(v), np.sign(v), v) for v in (va, vb))
        fa, fb = (np.where(np.isnan(s), np.nan, f) for s, f in ((sa, fa), (sb, fb)))
        return fa @ fb.T + np.where(np.isfinite(vc), 0.0, vc)


def _sum_products(va, ea, vb, eb, vc, ec, model: Numerics) -> np.ndarray:
    """float64 [M, N]: the exact sum of the truncated terms. Steps 2 to 4."""
    vb, eb = np.ascontiguousarray(vb.T), np.ascontiguousarray(eb.T)  # [K, N]
    top = np.full(vc.shape, 2 * _ZERO_EXPONENT, np.int16)
    term = np.empty_like(top)
    for k in range(va.shape[1]):
        np.add(ea[:, k, None], eb[k], out=term)
        np.maximum(top, term, out=top)
    top = np.maximum(np.maximum(top, ec), E_FLOOR)
    scale = np.ldexp(1.0, model.fraction_bits - top)
    total = np.trunc(vc * scale)
    product = np.empty_like(total)
    for k in range(va.shape[1]):
        np.multiply(va[:, k, None], vb[k], out=product)
        product *= scale
        np.trunc(product, out=product)
        total += product
    return _value(total, top, model)


def _sum_groups(va, vb, vc, ec, scales: Scales | None, model: Numerics) -> np.ndarray:
    """As `_sum_products` for packed 4-bit operands: 16 products make one term, whose exponent is that of
    its two scales alone."""
    if scales is None:
        raise EmulatorError("mma: packed 4-bit operands need block scales")
    fmt = _format(scales.format)
    sa, sb = _expanded(scales.a, scales, va), _expanded(scales.b, scales, vb)
    per_group = scales.block // model.group
    xa, xb = (np.repeat(_exponents(np.asarray(s), fmt), per_group, axis=1) for s in (scales.a, scales.b))
    terms, top = [], np.maximum(ec, E_FLOOR)
    for g in range(va.shape[1] // model.group):
        part = slice(g * model.group, (g + 1) * model.group)
        pair = np.nan_to_num(sa[:, part.start, None]) * np.nan_to_num(sb[:, part.start])
        terms.append((va[:, part] @ vb[:, part].T) * pair)
        exponent = xa[:, g, None].astype(np.int32) + xb[:, g]
        top = np.maximum(top, np.where(terms[-1] != 0, exponent, E_FLOOR))
    scale = np.ldexp(1.0, model.fraction_bits - top)
    total = np.trunc(vc * scale)
    for term in terms:
        total += np.trunc(term * scale)
    return _value(total, top, model)


def _value(total, top, model: Numerics) -> np.ndarray:
    # Adding +0 turns a sum of nothing but negative zeros into +0.
    return (total + 0.0) * np.ldexp(1.0, top - model.fraction_bits)


def _toward_zero(values: np.ndarray, fraction: int) -> np.ndarray:
    """uint32 f32 codes of float64 `values`, rounded toward zero to `fraction` fraction bits."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = values.astype(np.float32)
        beyond = np.abs(nearest.astype(np.float64)) > np.abs(values)
    # One code less is the next value toward zero, from infinity to the largest finite one as well.
    word = nearest.view(np.uint32) - (beyond & (np.abs(values) < 2.0**128)).astype(np.uint32)
    finite = np.isfinite(values)
    word = np.where(finite, word & np.uint32(0xFFFFFFFF << (23 - fraction) & 0xFFFFFFFF), word)
    return np.where(np.isnan(values), np.uint32(_F32_NAN), word)


def _positive_zero(codes: np.ndarray) -> np.ndarray:
    """Codes with +0 for -0: the tensor cores drop the sign of a sum that rounds to zero."""
    sign = codes.dtype.type(1 << (8 * codes.dtype.itemsize - 1))
    return np.where(codes == sign, codes.dtype.type(0), codes)


def _nearest(values: np.ndarray, d_format: str) -> np.ndarray:
    """Codes of float64 `values` rounded once to nearest even."""
    if d_format == "f16":
        return formats.encode(values, formats.F16)
    with np.errstate(over="ignore"):
        word = values.astype(np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(_F32_NAN), word)


def _integer(a, b, c, a_format, b_format, d_format, saturate) -> np.ndarray:
    """s32 accumulation: exact, wrapping or clamped."""
    if d_format != "s32" or a_format not in _INTEGERS or b_format not in _INTEGERS:
        raise EmulatorError(f"mma: {a_format} x {b_format} cannot accumulate in {d_format}")
    if (a_format == "b1") != (b_format == "b1"):
        raise EmulatorError("mma: b1 multiplies only b1")
    signed = {"s8": np.int8, "u8": np.uint8, "b1": np.uint8}
    va = a.astype(np.uint8).view(signed[a_format]).astype(np.float64)
    vb = b.astype(np.uint8).view(signed[b_format]).astype(np.float64)
    total = (va @ vb.T).astype(np.int64)  # below 2^53: exact
    if c is not None:
        total += np.ascontiguousarray(c).view(np.uint32).view(np.int32)
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return (total & 0xFFFFFFFF).astype(np.uint32)
