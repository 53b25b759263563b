"""Inputs for the arithmetic experiments, made anew (and the same) by the measurement and by the test."""

from __future__ import annotations

import numpy as np

M, N = 64, 128

# Kind code of the device program: (name, A format, B format, D format, K).
KINDS = {
    0: ("f16", "f16", "f16", "f32", 16),
    1: ("bf16", "bf16", "bf16", "f32", 16),
    2: ("tf32", "tf32", "tf32", "f32", 8),
    3: ("e4m3", "e4m3", "e4m3", "f32", 32),
    4: ("e5m2", "e5m2", "e5m2", "f32", 32),
    5: ("e4m3 x e5m2", "e4m3", "e5m2", "f32", 32),
    7: ("f16 to f16", "f16", "f16", "f16", 16),
    8: ("e4m3 to f16", "e4m3", "e4m3", "f16", 32),
    9: ("e5m2 to f16", "e5m2", "e5m2", "f16", 32),
}
# The same for mma.sync, which takes the same operands.
MMA_SYNC = 16
KINDS |= {MMA_SYNC + kind: KINDS[kind] for kind in KINDS}

# bits, fraction bits, bias, ignored low bits
_LAYOUT = {
    "f32": (32, 23, 127, 0), "f16": (16, 10, 15, 0), "bf16": (16, 7, 127, 0), "tf32": (19, 10, 127, 13),
    "e4m3": (8, 3, 7, 0), "e5m2": (8, 2, 15, 0),
}  # fmt: skip
_DTYPE = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def _stored(code, name):
    bits, _, _, skip = _LAYOUT[name]
    return (code.astype(np.uint64) << np.uint64(skip)).astype(_DTYPE[bits + skip])


def _near(rng, name, shape, low, high, zeros=0.05):
    """Codes whose exponents lie in [low, high], with some zeros of both signs."""
    bits, fraction, bias, _ = _LAYOUT[name]
    top = (1 << (bits - 1 - fraction)) - 2
    field = np.clip(bias + rng.integers(low, high + 1, shape), 0, top)
    code = field << fraction | rng.integers(0, 1 << fraction, shape)
    code = np.where(rng.random(shape) < zeros, 0, code) | rng.integers(0, 2, shape) << (bits - 1)
    return _stored(code, name)


def _any(rng, name, shape):
    return _stored(rng.integers(0, 1 << _LAYOUT[name][0], shape), name)


def _least(name):
    return 1 - _LAYOUT[name][2]


def _case(case: str, rng, fa, fb, fd, k):
    a, b, c = (M, k), (N, k), (M, N)
    if case == "overlapping":  # terms of similar size: alignment and rounding everywhere
        return _near(rng, fa, a, -4, 4), _near(rng, fb, b, -4, 4), _near(rng, fd, c, -8, 8)
    if case == "spread":  # terms around the last bit that survives beside a large c
        return _near(rng, fa, a, -13, 0), _near(rng, fb, b, -13, 0), _near(rng, fd, c, -3, 3, 0.3)
    if case == "no accumulator":
        return _near(rng, fa, a, -9, 1), _near(rng, fb, b, -9, 1), np.zeros(c, _DTYPE[_LAYOUT[fd][0]])
    if case == "subnormal":  # products and accumulators at the bottom of the range of D
        half = max(_least(fa), -70), max(_least(fb), -70)
        low = _least(fd)
        return (
            _near(rng, fa, a, half[0] - 1, half[0] + 8),
            _near(rng, fb, b, half[1] - 1, half[1] + 8),
            _near(rng, fd, c, low - 1, low + 1, 0.5),
        )
    if case == "below the range":  # products with exponents below that of an accumulator that is zero
        ends = [(max(_least(f) - 1, -78), max(_least(f) + 2, -66)) for f in (fa, fb)]
        zero = np.zeros(c, _DTYPE[_LAYOUT[fd][0]])
        return _near(rng, fa, a, *ends[0]), _near(rng, fb, b, *ends[1]), zero
    if case == "signed zeros":  # every product is a zero
        one_zero = _stored(rng.integers(0, 2, a) << (_LAYOUT[fa][0] - 1), fa)
        return one_zero, _near(rng, fb, b, -2, 2), _near(rng, fd, c, 0, 0, 1.0)
    if case == "subnormal factors":  # the largest term has one: its exponent decides where the others are cut
        high = min(15 - _least(fa), _LAYOUT[fb][2])
        low = _least(fa) + high
        return (
            _near(rng, fa, a, _least(fa) - 1, _least(fa), 0.0),
            _near(rng, fb, b, high - 28, high),
            _near(rng, fd, c, low - 20, low - 5, 0.5),
        )
    return _any(rng, fa, a), _any(rng, fb, b), _any(rng, fd, c)  # "any bits"


CASES = (
    "overlapping",
    "spread",
    "no accumulator",
    "subnormal",
    "below the range",
    "signed zeros",
    "any bits",
    "subnormal factors",
)


def inputs(kind: int, case: str):
    """(A [64, K], B [128, K], C [64, 128]) codes of one arithmetic case."""
    _, fa, fb, fd, k = KINDS[kind]
    rng = np.random.Generator(np.random.PCG64([kind % MMA_SYNC, CASES.index(case)]))
    return _case(case, rng, fa, fb, fd, k)
