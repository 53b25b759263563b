"""Shapes that many instructions share."""

from __future__ import annotations

import numpy as np

from kgen.emulator.lanewise import Lanewise

__all__ = ["apply", "nothing", "put", "several", "ternary", "through", "unary"]


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

    fn.lanewise = Lanewise(ufunc, (d,), (a, b))
    return fn


def unary(ufunc, d: int, a: int):
    """d = ufunc(a)."""

    def fn(w, m):
        v = w.v
        if m is True:
            ufunc(v[a], out=v[d])
        else:
            ufunc(v[a], out=v[d], where=m)

    fn.lanewise = Lanewise(ufunc, (d,), (a,))
    return fn


def ternary(f, d: int, a: int, b: int, c: int):
    """d = f(a, b, c). As `through`."""
    return through(f, d, a, b, c)


def through(f, d: int, *sources: int):
    """d = f(*sources), f any function of flat arrays that treats lanes alike (see Lanewise)."""
    fn = _through(f, d, *sources)
    if d is not None:
        fn.lanewise = Lanewise(f, (d,), sources)
    return fn


def _through(f, d: int, *sources: int):
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


def several(f, outs: tuple[int | None, ...], *sources: int):
    """As `through`, with a tuple of results, for `outs`; None: not wanted."""
    wanted = [i for i, out in enumerate(outs) if out is not None]
    kept = tuple(outs[i] for i in wanted)

    def fn(w, m):
        v = w.v
        results = f(*(v[s] for s in sources))
        for i, out in zip(wanted, kept, strict=True):
            put(v[out], results[i], m)

    if len(kept) == 1:
        only = wanted[0]
        fn.lanewise = Lanewise(lambda *x: f(*x)[only], kept, sources)
    elif kept:
        fn.lanewise = Lanewise(lambda *x: tuple(f(*x)[i] for i in wanted), kept, sources)
    return fn
