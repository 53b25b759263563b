"""vprintf: formats the arguments that the caller packed in its local memory. CUDA programming guide, printf."""

from __future__ import annotations

import re

import numpy as np

from kgen.emulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW
from kgen.errors import EmulatorError

__all__ = ["bind_printf"]

_SPEC = re.compile(r"%([-+ #0]*)(\d*)(?:\.(\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


def bind_printf(b, results, arguments):
    """The closure of `call (r), vprintf, (format, arguments)`; prints one line per lane to stdout."""
    form, pack = (b.addresses[x.name][1] for x in arguments.items)
    result = b.addresses[results.items[0].name][1] if results.items else None

    def fn(w, m):
        for lane in range(32) if m is True else np.flatnonzero(m):
            frame = w.local[lane]
            text_at = int(frame[form : form + 8].view(np.uint64)[0])
            at = int(frame[pack : pack + 8].view(np.uint64)[0])
            print(_render(_string(w, text_at), frame, at - LOCAL_WINDOW, w), end="")
            if result is not None:
                frame[result : result + 4] = 0

    return fn


def _string(w, address: int) -> str:
    memory = w.machine.memory
    if address < GLOBAL_WINDOW:
        raise EmulatorError(f"vprintf: {address:#x} is no string")
    at = address - memory.base
    return bytes(memory.bytes[at : at + 4096]).split(b"\0", 1)[0].decode("latin-1")


def _render(text: str, frame, at: int, w) -> str:
    def one(match):
        nonlocal at
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        size = 8 if kind in "fFeEgGaAps" or length in ("l", "ll", "z", "j", "t") else 4
        at = -(-at // size) * size
        raw = frame[at : at + size]
        at += size
        form = f"%{flags}{width}" + (f".{precision}" if precision else "")
        if kind in "fFeEgGaA":
            return (form + kind.replace("a", "g").replace("A", "G")) % float(raw.view(np.float64)[0])
        value = int(raw.view(f"{'i' if kind in 'di' else 'u'}{size}")[0])
        if kind == "s":
            return (form + "s") % _string(w, value)
        if kind == "p":
            return hex(value)
        return (form + {"u": "d", "i": "d"}.get(kind, kind)) % (chr(value) if kind == "c" else value)

    return _SPEC.sub(one, text)
