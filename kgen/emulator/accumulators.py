"""Which instructions touch registers that wgmma or tcgen05.ld own for a while, so that only those are checked.

PTX ISA §9.7.15.7 (wgmma), §9.7.16.8 (tcgen05.ld: registers are written at any time up to wait::ld).
"""

from __future__ import annotations

from dataclasses import dataclass

from kgen.emulator.operands import Instruction

__all__ = ["guard"]


def guard(instructions: list[Instruction], code: list, touched: list[tuple[set, set]]) -> None:
    """Wraps the closures of other instructions that touch a register which some wgmma uses as D or A."""
    used: set[str] = set()
    for inst, (_, writes) in zip(instructions, touched, strict=True):
        if inst.name.startswith("wgmma.mma_async"):
            used |= writes | {x.name for x in getattr(inst.operands[1], "items", ())}
    loaded: set[str] = set()
    for inst, (_, writes) in zip(instructions, touched, strict=True):
        if inst.name.startswith("tcgen05.ld"):
            loaded |= writes
    for i, (reads, writes) in enumerate(touched):
        if instructions[i].op != "wgmma" and (reads | writes) & used:
            code[i] = _wrapped(code[i], sorted(reads & used), sorted(writes & used), instructions[i].name)
        if (reads | writes) & loaded:
            code[i] = _loading(code[i], (reads | writes) & loaded, instructions[i].name)


def _loading(fn, names: set[str], what: str):
    def checked(w, m):
        if w.loading and (early := names & w.loading):
            text = f"{what} touches register {min(early)}, which a tcgen05.ld writes, before tcgen05.wait::ld"
            w.machine.monitor.fail("tmem-missing-wait-ld", text)
        return fn(w, m)

    checked.check = _Loading(fn)
    return checked


def _wrapped(fn, reads: list[str], writes: list[str], what: str):
    def checked(w, m):
        queue = w.warpgroup
        if queue is not None:
            if queue.busy(w.index % 4):
                queue.check_access(w.index % 4, reads, writes, what)
            if writes:
                queue.note_write(w.index % 4, writes)
        return fn(w, m)

    checked.check = _Multiplying(fn, frozenset(writes))
    return checked


# The same checks for blocks.py: when they have nothing to say.
@dataclass(frozen=True)
class _Loading:
    inner: object

    def add_to(self, conditions) -> None:
        conditions.loading = True


@dataclass(frozen=True)
class _Multiplying:
    inner: object
    writes: frozenset[str]

    def add_to(self, conditions) -> None:
        conditions.multiplying = True
        conditions.changed |= self.writes
