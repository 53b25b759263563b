"""wgmma: groups of four warps. PTX ISA §9.7.15. The queue of a warpgroup is in wgmma.py."""

from __future__ import annotations

import re

import numpy as np

from kgen.emulator.isa.control import gather_all
from kgen.emulator.operands import Imm, Reg, Vector
from kgen.emulator.registry import op
from kgen.emulator.warp import RETRY
from kgen.emulator.wgmma import Registers, Wgmma, WgmmaKind
from kgen.errors import EmulatorError


def warpgroup(w) -> Wgmma:
    """The queue of a warp's warpgroup."""
    if w.warpgroup is None:
        number = w.index // 4
        if len(w.cta.warps) < 4 * number + 4:
            raise EmulatorError("wgmma needs a warpgroup: four whole warps, the first a multiple of four")
        name = f"{w.cta.name} warpgroup {number}"
        queue = Wgmma(w.cta.cluster.units, w.cta.units, name, w.machine.arithmetic)
        for x in w.cta.warps[4 * number : 4 * number + 4]:
            x.warpgroup = queue
    return w.warpgroup


@op("wgmma.fence", "wgmma.commit_group")
def fence_commit(b, inst, mods):
    mods.flag("sync", "aligned")
    commit = inst.mods[0] == "commit_group"

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        queue = warpgroup(w)
        (queue.commit if commit else queue.fence)(w.index % 4)
        w.machine.progress += 1
        return None

    return fn


class _Wait:
    def __init__(self, w, queue: Wgmma, left: int):
        self.w, self.queue, self.left = w, queue, left

    def ready(self) -> bool:
        return self.queue.wait_ready(self.w.index % 4, self.left)

    def describe(self) -> str:
        return self.queue.waits_for(self.w.index % 4, self.left)


@op("wgmma.wait_group")
def wait(b, inst, mods):
    mods.flag("sync", "aligned")
    left = inst.operands[0].value

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        queue = warpgroup(w)
        if not queue.wait_ready(w.index % 4, left):
            return (RETRY, _Wait(w, queue, left))
        queue.wait(w.index % 4, w.actor, left)
        w.machine.progress += 1
        return None

    return fn


@op("wgmma.mma_async")
def mma_async(b, inst, mods):
    mods.flag("sync", "aligned")
    saturate = mods.flag("satfinite")
    if mods.flag("sp"):
        raise EmulatorError(f"{inst.name}: sparse forms are not modelled")
    mods.flag("and", "popc")
    shape = next((x for x in mods.left if re.fullmatch(r"m64n\d+k\d+", x)), "")
    mods.flag(shape)
    n, k = (int(x) for x in re.findall(r"\d+", shape)[1:])
    b_type, a_type, d_type = mods.last(), mods.last(), mods.last()
    d, a, bd, *rest = inst.operands
    in_registers = isinstance(a, Vector)
    scale = rest.pop(0) if rest else Imm(1)
    flags = [x.value for x in rest]
    negate = [flags.pop(0) == -1, flags.pop(0) == -1] if d_type != "s32" and len(flags) >= 2 else [False, False]
    trans_a = bool(flags.pop(0)) if flags and not in_registers else False
    trans_b = bool(flags.pop(0)) if flags else False
    if flags:
        raise EmulatorError(f"{inst.name}: too many immediates")
    kind = WgmmaKind(n, a_type, b_type, d_type, *negate, trans_a, trans_b, saturate)
    kind.check(in_registers)
    if k != kind.k:
        raise EmulatorError(f"{inst.name}: K of {a_type} is {kind.k}")
    outs = b.rows(d.items, 4)
    count = n // 4 if d_type == "f16" else n // 2
    if outs is None or len(outs) != count:
        raise EmulatorError(f"{inst.name}: the accumulator needs {count} 32-bit registers")
    a_rows = b.rows(a.items, 4, write=False) if in_registers else None
    if in_registers and (a_rows is None or len(a_rows) != 4):
        raise EmulatorError(f"{inst.name}: A in registers needs four 32-bit registers")
    a_slot, b_slot = None if in_registers else b.src(a, "u64"), b.src(bd, "u64")
    scale_slot = b.src(scale, "pred") if isinstance(scale, Reg) else None
    d_names = frozenset(x.name for x in d.items)
    a_names = frozenset(x.name for x in a.items) if in_registers else frozenset()

    def registers(w) -> Registers:
        bank = w.banks[4]

        def write(values):
            bank[outs] = values.T

        read_a = (lambda: bank[a_rows].T) if in_registers else None
        return Registers(lambda: bank[outs].T, write, read_a, d_names, a_names)

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        lane = 0 if m is True else int(np.flatnonzero(m)[0])
        add = bool(w.v[scale_slot][lane]) ^ scale.negated if scale_slot is not None else bool(scale.value)
        a_word = None if a_slot is None else int(w.v[a_slot][lane])
        warpgroup(w).mma(w.index % 4, w.actor, kind, a_word, int(w.v[b_slot][lane]), add, registers(w))
        return None

    return fn
