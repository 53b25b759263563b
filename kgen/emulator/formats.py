"""Number formats narrower than float64: codes to values, exactly, and values to codes, correctly rounded.

A code is the unsigned integer that the bits of a value make. tf32 is a float32 word; only its upper 19
bits count (the low 13 are ignored on decode and zero after encode).

PTX ISA: "Alternate floating-point data formats" and "cvt" (9.7.9.21): `.satfinite` turns overflow and
infinities into the largest finite value of that sign; NaN becomes the canonical NaN where the format has
one and +max where it has none; `.relu` turns negative results into +0. That the sign is ignored when
converting to ue8m0, and that values up to 2^-127 give code 0, is how CUDA's own host fallback does it
(cuda_fp8.hpp); ue4m3's ignored sign is [mmasim].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgen.errors import EmulatorError


@dataclass(frozen=True)
class Format:
    """A binary floating format. `mantissa` counts stored bits; `special` says what the top exponent means:
    "ieee" inf and NaN, "nan" only all-ones is NaN, "finite" neither."""

    name: str
    bits: int  # of the code that carries values; 19 for tf32
    exponent: int
    mantissa: int
    bias: int
    special: str
    signed: bool = True
    shift: int = 0  # unused low bits of the register (13 for tf32)

    @property
    def storage(self) -> int:
        """Bits of the container a code is held in: 8 for all narrower types."""
        return max(8, self.bits + self.shift)

    @property
    def dtype(self):
        return {8: np.uint8, 16: np.uint16, 32: np.uint32}[self.storage]

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal value, and of all subnormals."""
        return 1 - self.bias

    @property
    def max_code(self) -> int:
        """Largest finite magnitude, as a code without `shift`."""
        top = (1 << (self.exponent + self.mantissa)) - 1
        return top - {"ieee": 1 << self.mantissa, "nan": 1, "finite": 0}[self.special]

    @property
    def max_value(self) -> float:
        return float(self.table[self.max_code])

    @property
    def nan_code(self) -> int:
        """Canonical NaN in the register; the unused low bits of a tf32 are zero in it as in every code."""
        if self.special == "finite":
            raise EmulatorError(f"{self.name} has no NaN")
        return ((1 << (self.exponent + self.mantissa)) - 1) << self.shift

    @cached_property
    def table(self) -> np.ndarray:
        """float64 value of every code of `bits` bits."""
        codes = np.arange(1 << self.bits, dtype=np.int64)
        field = codes >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = codes & ((1 << self.mantissa) - 1)
        normal = field > 0
        significand = fraction + np.where(normal, 1 << self.mantissa, 0)
        values = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - self.bias - self.mantissa)
        if self.special == "ieee":
            top = field == (1 << self.exponent) - 1
            values = np.where(top, np.where(fraction == 0, np.inf, np.nan), values)
        elif self.special == "nan":
            values = np.where((codes & (self.max_code + 1)) == self.max_code + 1, np.nan, values)
        if self.signed:
            values = np.where(codes >> (self.bits - 1), -values, values)
        values.flags.writeable = False
        return values


class _E8M0(Format):
    """Powers of two without sign or mantissa: code c is 2^(c - 127), 0xff is NaN."""

    @cached_property
    def table(self) -> np.ndarray:
        values = np.ldexp(1.0, np.arange(256) - 127)
        values[255] = np.nan
        values.flags.writeable = False
        return values

    @property
    def max_code(self) -> int:
        return 0xFE


F16 = Format("f16", 16, 5, 10, 15, "ieee")
BF16 = Format("bf16", 16, 8, 7, 127, "ieee")
TF32 = Format("tf32", 19, 8, 10, 127, "ieee", shift=13)
E4M3 = Format("e4m3", 8, 4, 3, 7, "nan")
E5M2 = Format("e5m2", 8, 5, 2, 15, "ieee")
E2M3 = Format("e2m3", 6, 2, 3, 1, "finite")
E3M2 = Format("e3m2", 6, 3, 2, 3, "finite")
E2M1 = Format("e2m1", 4, 2, 1, 1, "finite")
UE8M0 = _E8M0("ue8m0", 8, 8, 0, 127, "nan", signed=False)
UE4M3 = Format("ue4m3", 8, 4, 3, 7, "nan", signed=False)

FORMATS = {f.name: f for f in (F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, UE8M0, UE4M3)}


def decode(codes, fmt: Format) -> np.ndarray:
    """float64 values of `codes` (any unsigned integer array); exact. Bits above the format's are ignored."""
    codes = np.asarray(codes) >> fmt.shift
    # Unsigned formats with a spare top bit (ue4m3) ignore it.
    width = fmt.bits if fmt.signed or fmt is UE8M0 else fmt.bits - 1
    return fmt.table[codes & ((1 << width) - 1)]


def encode(
    values, fmt: Format, rounding: str = "rn", satfinite: bool = False, relu: bool = False, random=0.0, kept: int = 0
):
    """Codes (uint8, uint16 or uint32) of float32 or float64 `values`.

    rounding: "rn" nearest even, "rz" toward zero, "rm" down, "rp" up, "rna" nearest with ties away (tf32),
    "rs" toward zero after `random` (0..1, of `kept` bits) units of the last place were added; ue8m0 has "rz"
    and "rp". Without satfinite an overflow gives what IEEE says: infinity when rounding to nearest (NaN in
    e4m3), the largest finite value when rounding the other way; the 4- and 6-bit
    formats always saturate. Subnormal results are kept.
    """
    values = np.asarray(values, np.float64)
    nan = np.isnan(values)
    magnitude = np.where(nan, 0.0, np.abs(values))
    if fmt is UE8M0:
        codes = _encode_ue8m0(magnitude, rounding, satfinite)
        return np.where(nan, 0xFF, codes).astype(fmt.dtype)
    infinite = np.isinf(magnitude)
    negative = np.signbit(values) & ~nan
    if rounding in ("rm", "rp"):
        away = negative if rounding == "rm" else ~negative
        codes = _rounded(np.where(infinite, 0.0, magnitude), fmt, "directed", away)
    else:
        away = rounding != "rz"
        codes = _rounded(np.where(infinite, 0.0, magnitude), fmt, rounding, random, kept)
    overflow = codes > fmt.max_code
    codes = np.where(overflow, fmt.max_code, codes)
    if not satfinite and fmt.special != "finite":
        past_top = infinite | (overflow & away)
        codes = np.where(past_top, fmt.max_code + 1, codes)  # the code of infinity, or e4m3's NaN
    else:
        codes = np.where(infinite, fmt.max_code, codes)
    if relu:
        codes = np.where(negative, 0, codes)
    elif fmt.signed:
        codes = codes | negative.astype(np.int64) << (fmt.bits - 1)
    codes = codes << fmt.shift
    return np.where(nan, fmt.nan_code if fmt.special != "finite" else fmt.max_code, codes).astype(fmt.dtype)


def _rounded(magnitude: np.ndarray, fmt: Format, rounding: str, extra=0.0, kept: int = 0) -> np.ndarray:
    """int64 codes of finite magnitudes, without regard to the top of the range. extra: which go away from zero
    ("directed"), or the random part that is added ("rs")."""
    _, exponent = np.frexp(magnitude)
    # frexp's exponent of zero is 0, far above the smallest.
    exponent = np.where(magnitude == 0, fmt.min_exponent, np.maximum(exponent - 1, fmt.min_exponent))
    scaled = np.ldexp(magnitude, fmt.mantissa - exponent)  # in units of the last place
    if rounding == "rn":
        scaled = np.rint(scaled)
    elif rounding == "rz":
        scaled = np.floor(scaled)
    elif rounding == "directed":
        scaled = np.where(extra, np.ceil(scaled), np.floor(scaled))
    elif rounding == "rs":
        # Bits below the random ones never carry, and would not fit into a float64 with them.
        scaled = np.floor(np.floor(scaled * 2.0**kept) / 2.0**kept + extra)
    elif rounding == "rna":
        # floor(x + 0.5) would round up the largest value below one half.
        whole = np.floor(scaled)
        scaled = whole + (scaled - whole >= 0.5)
    else:
        raise EmulatorError(f"{fmt.name}: rounding {rounding} does not exist")
    # A significand that rounds up to the next power of two carries into the exponent field by itself.
    return ((exponent - fmt.min_exponent).astype(np.int64) << fmt.mantissa) + scaled.astype(np.int64)


def _encode_ue8m0(magnitude: np.ndarray, rounding: str, satfinite: bool) -> np.ndarray:
    if rounding not in ("rz", "rp"):
        raise EmulatorError(f"ue8m0: rounding {rounding} does not exist, only rz and rp")
    infinite = np.isinf(magnitude)
    fraction, exponent = np.frexp(np.where(infinite, 1.0, magnitude))
    code = exponent - 1 + 127
    if rounding == "rp":
        code = code + (fraction > 0.5)
    code = np.where(magnitude <= 2.0**-127, 0, code)
    return np.where(infinite | (code > 0xFE), 0xFE if satfinite else 0xFF, code)


def pack_pair(upper, lower, fmt: Format):
    """The packed pair of `cvt.<fmt>x2 d, a, b`: operand a is the upper element, b the lower.

    4-bit pairs make one byte; 6- and 8-bit ones 16 bits with each element in its byte; 16-bit ones 32.
    """
    step = 4 if fmt.bits == 4 else fmt.storage
    dtype = {4: np.uint8, 8: np.uint16, 16: np.uint32}[step]
    return np.asarray(upper, dtype) << step | np.asarray(lower, dtype)


def unpack_pair(packed, fmt: Format):
    """(upper, lower) codes of a packed pair; the inverse of `pack_pair`."""
    step = 4 if fmt.bits == 4 else fmt.storage
    packed = np.asarray(packed)
    mask = (1 << min(step, fmt.bits)) - 1
    return (packed >> step & mask).astype(fmt.dtype), (packed & mask).astype(fmt.dtype)
