"""Which instructions touch registers of wgmma, so that only those are checked. PTX ISA §9.7.15.7."""

from __future__ import annotations

from kgen.emulator.operands import Instruction

__all__ = ["guard"]


def guard(instructions: list[Instruction], code: list, touched: list[tuple[set, set]]) -> None:
    """Wraps the closures of other instructions that touch a register which some wgmma uses as D or A."""
    used: set[str] = set()
    for inst, (_, writes) in zip(instructions, touched, strict=True):
        if inst.name.startswith("wgmma.mma_async"):
            used |= writes | {x.name for x in getattr(inst.operands[1], "items", ())}
    for i, (reads, writes) in enumerate(touched):
        if instructions[i].op != "wgmma" and (reads | writes) & used:
            code[i] = _wrapped(code[i], sorted(reads & used), sorted(writes & used), instructions[i].name)


def _wrapped(fn, reads: list[str], writes: list[str], what: str):
    def checked(w, m):
        queue = w.warpgroup
        if queue is not None:
            if queue.busy(w.index % 4):
                queue.check_access(w.index % 4, reads, writes, what)
            if writes:
                queue.note_write(w.index % 4, writes)
        return fn(w, m)

    return checked
