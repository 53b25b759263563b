"""The rules of tensor-core arithmetic in exact fractions, one scalar at a time, sharing nothing with kgen."""

from fractions import Fraction

import numpy as np

# name: (code bits, exponent bits, fraction bits, bias, top exponent means inf/NaN, ignored low bits)
LAYOUT = {
    "f32": (32, 8, 23, 127, True, 0), "f16": (16, 5, 10, 15, True, 0), "bf16": (16, 8, 7, 127, True, 0),
    "tf32": (19, 8, 10, 127, True, 13), "e5m2": (8, 5, 2, 15, True, 0), "e4m3": (8, 4, 3, 7, False, 0),
    "e2m3": (6, 2, 3, 1, False, 0), "e3m2": (6, 3, 2, 3, False, 0), "e2m1": (4, 2, 1, 1, False, 0),
}  # fmt: skip


def split(code, name):
    """(significand as Fraction with sign, exponent), or "nan", or +-"inf" as a float."""
    bits, ebits, fbits, bias, ieee, skip = LAYOUT[name]
    code = int(code) >> skip
    sign = -1 if code >> (bits - 1) & 1 else 1
    field, fraction = code >> fbits & ((1 << ebits) - 1), code & ((1 << fbits) - 1)
    if ieee and field == (1 << ebits) - 1:
        return "nan" if fraction else float(sign) * float("inf")
    if name == "e4m3" and field == 15 and fraction == 7:
        return "nan"
    if field == 0:
        return Fraction(sign * fraction, 1 << fbits), 1 - bias
    return Fraction(sign * ((1 << fbits) + fraction), 1 << fbits), field - bias


def truncated(x):
    return int(x)  # Fraction.__trunc__: toward zero


def power(e):
    return Fraction(2) ** e


def align_and_add(terms, fraction_bits):
    """terms: (significand, exponent). The fused sum of rules 2 to 4, as a Fraction."""
    top = max([e for s, e in terms if s] + [-133])
    return sum(truncated(s * power(e - top + fraction_bits)) for s, e in terms) * power(top - fraction_bits)


def to_f32(x, fraction_bits):
    if x == 0:
        return 0
    sign, x = (0x80000000 if x < 0 else 0), abs(x)
    if x >= power(128):
        return sign | 0x7F800000
    e = -126
    while x >= power(e + 1):
        e += 1
    ulps = truncated(x / power(e - fraction_bits)) << (23 - fraction_bits)
    if not ulps:
        return 0
    return sign | (ulps if e == -126 and ulps < 1 << 23 else ((e + 126) << 23) + ulps)


def to_f16(x):
    sign, x = (0x8000 if x < 0 else 0), abs(x)
    e = -14
    while x >= power(e + 1):
        e += 1
    scaled = x / power(e - 10)
    ulps = truncated(scaled)
    rest = scaled - ulps
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and ulps % 2):
        ulps += 1
    code = ((e + 14) << 10) + ulps
    return sign | min(code, 0x7C00) if code else 0


def nearest_f32(x):
    """To nearest even, by one more bit than f32 has and what lies below it."""
    low = to_f32(x, 23)
    sign, magnitude = low & 0x80000000, low & 0x7FFFFFFF
    if magnitude >= 0x7F800000:
        return low
    value = lambda code: abs(split(code, "f32")[0]) * power(split(code, "f32")[1])  # noqa: E731
    high = magnitude + 1
    step = value(high) - value(magnitude) if high < 0x7F800000 else power(104)
    rest = abs(x) - value(magnitude)
    code = high if rest > step / 2 or (rest == step / 2 and magnitude % 2) else magnitude
    return (0x80000000 if x < 0 else 0) | code if code else sign


def special_value(a, b, c):
    """"nan", an infinity, or None, by the rules of IEEE addition and multiplication."""
    inf = []
    for x, y in zip(a, b, strict=True):
        if "nan" in (x, y):
            return "nan"
        if isinstance(x, float) or isinstance(y, float):
            if any(not isinstance(v, float) and v[0] == 0 for v in (x, y)):
                return "nan"
            signs = [(v if isinstance(v, float) else v[0]) < 0 for v in (x, y)]
            inf.append(float("-inf") if signs[0] != signs[1] else float("inf"))
    if c == "nan":
        return "nan"
    inf += [c] if isinstance(c, float) else []
    if not inf:
        return None
    return inf[0] if all(v == inf[0] for v in inf) else "nan"


def slow_mma(a, b, c, fa, fb, d, fraction_bits, f32_fraction=23, shift=lambda r, n, k: 0):
    out = np.zeros((len(a), len(b)), np.uint32 if d == "f32" else np.uint16)
    for m, n in np.ndindex(out.shape):
        xs, ys, z = [split(v, fa) for v in a[m]], [split(v, fb) for v in b[n]], split(c[m, n], d)
        special = special_value(xs, ys, z)
        if special is not None:
            codes = {"f32": (0x7FFFFFFF, 0x7F800000, 0xFF800000), "f16": (0x7FFF, 0x7C00, 0xFC00)}[d]
            out[m, n] = codes[0] if special == "nan" else codes[1] if special > 0 else codes[2]
            continue
        terms = [
            (x[0] * y[0], x[1] + y[1] + shift(m, n, k)) for k, (x, y) in enumerate(zip(xs, ys, strict=True))
        ]
        total = align_and_add([*terms, z], fraction_bits)
        out[m, n] = to_f32(total, f32_fraction) if d == "f32" else to_f16(total)
    return out


def value_of(code, name):
    """A finite code as a Fraction."""
    significand, exponent = split(code, name)
    return significand * power(exponent)


def slow_mma_sync_fp8(a, b, c, fa, fb, d):
    """Hopper's fp8 mma.sync: f16 factors; from zero, k % 4 < 2 and then the others; C is added."""
    out = np.zeros((len(a), len(b)), np.uint32 if d == "f32" else np.uint16)
    as_f16 = {f: np.array([f16_code(v, f) for v in range(256)], np.uint16) for f in (fa, fb)}
    first = [k for k in range(a.shape[1]) if k % 4 < 2]
    second = [k for k in range(a.shape[1]) if k % 4 >= 2]
    products = np.zeros_like(out)
    for part in (first, second):
        products = slow_mma(as_f16[fa][a[:, part]], as_f16[fb][b[:, part]], products, "f16", "f16", d, 25)
    codes = {"f32": (0x7FFFFFFF, 0x7F800000, 0xFF800000), "f16": (0x7FFF, 0x7C00, 0xFC00)}[d]
    one = {"f32": 0x3F800000, "f16": 0x3C00}[d]
    for m, n in np.ndindex(out.shape):
        special = special_value([split(products[m, n], d)], [split(one, d)], split(c[m, n], d))
        if special is not None:
            out[m, n] = codes[0] if special == "nan" else codes[1] if special > 0 else codes[2]
            continue
        total = value_of(products[m, n], d) + value_of(c[m, n], d)
        out[m, n] = nearest_f32(total) if d == "f32" else to_f16(total)
    return out


def f16_code(code, name):
    parts = split(code, name)
    if parts == "nan":
        return 0x7FFF
    if isinstance(parts, float):
        return 0x7C00 if parts > 0 else 0xFC00
    return to_f16(parts[0] * power(parts[1]))
