"""Instructions that do the same to each lane on its own, as functions of arrays, so that many can run at once.

A closure of such an instruction carries a `Lanewise`. Its function takes flat arrays, one per source, of any whole
number of warps' lanes, and returns one array per destination; two instructions whose functions have one `signature`
are one call over both their lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType

import numpy as np

__all__ = ["Lanewise", "guarded", "signature"]

_VALUES = (int, float, str, bytes, bool, type(None), type, np.dtype, np.ufunc)


@dataclass(frozen=True)
class Lanewise:
    """f(*sources) -> what `outs` get: an array, or a tuple of as many as there are outs. All are slots."""

    f: Callable
    outs: tuple[int, ...]
    sources: tuple[int, ...]


def guarded(what: Lanewise, slot: int, negated: bool) -> Lanewise:
    """The same under a guard predicate: lanes where it is false keep what they had."""
    n, f = len(what.sources), what.f

    def merged(*x):
        took, old = x[n] ^ negated, x[n + 1 :]
        results = f(*x[:n])
        if len(old) == 1:
            results = (results,)
        kept = tuple(np.where(took, r.astype(o.dtype, copy=False), o) for r, o in zip(results, old, strict=True))
        return kept[0] if len(old) == 1 else kept

    return Lanewise(merged, what.outs, (*what.sources, slot, *what.outs))


def signature(f, depth: int = 0):
    """A hashable value; functions of equal signature compute the same: same code, same values in its closure."""
    if depth > 8:
        return ("object", id(f))
    if isinstance(f, FunctionType):
        cells = tuple(signature(c.cell_contents, depth + 1) for c in f.__closure__ or ())
        return (f.__code__, cells, signature(f.__defaults__, depth + 1))
    if isinstance(f, _VALUES):
        return (type(f), f)  # 1, 1.0 and True are equal, yet not the same
    if isinstance(f, list | tuple):
        return (type(f), *(signature(x, depth + 1) for x in f))
    return ("object", id(f))
