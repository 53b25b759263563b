"""Shapes that many instructions share."""

from __future__ import annotations

import numpy as np

from kgen.emulator.operands import Sink

__all__ = ["apply", "nothing", "put", "ternary", "through", "unary"]


def put(row, value, m) -> None:
    """row = value in the lanes of m (True: all)."""
    if m is True:
        row[:] = value
    else:
        np.copyto(row, value, casting="unsafe", where=m)


def nothing(w, m):
    """An instruction without an effect that the emulator could see (hints)."""
    return None


def apply(ufunc, d: int, a: int, b: int):
    """d = ufunc(a, b)."""

    def fn(w, m):
        v = w.v
        if m is True:
            ufunc(v[a], v[b], out=v[d])
        else:
            ufunc(v[a], v[b], out=v[d], where=m)

    return fn


def unary(ufunc, d: int, a: int):
    """d = ufunc(a)."""

    def fn(w, m):
        v = w.v
        if m is True:
            ufunc(v[a], out=v[d])
        else:
            ufunc(v[a], out=v[d], where=m)

    return fn


def ternary(f, d: int, a: int, b: int, c: int):
    """d = f(a, b, c), f any function of arrays."""

    def fn(w, m):
        v = w.v
        put(v[d], f(v[a], v[b], v[c]), m)

    return fn


def through(f, d: int, *sources: int):
    """d = f(*sources), f any function of arrays."""
    if len(sources) == 1:
        (a,) = sources

        def one(w, m):
            v = w.v
            put(v[d], f(v[a]), m)

        return one
    if len(sources) == 2:
        a, b = sources

        def two(w, m):
            v = w.v
            put(v[d], f(v[a], v[b]), m)

        return two

    def many(w, m):
        v = w.v
        put(v[d], f(*(v[s] for s in sources)), m)

    return many


def unwanted(inst) -> bool:
    """True if the result is `_`."""
    return isinstance(inst.operands[0], Sink)
