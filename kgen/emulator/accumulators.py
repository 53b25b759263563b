"""Registers that wgmma works on while it runs. PTX ISA §9.7.15.7 (wgmma.fence, wait_group).

Instructions other than wgmma that touch a register which some wgmma uses as D or A get a small test: whether a
wgmma of their warp still has it, and whether they leave it in need of wgmma.fence.
"""

from __future__ import annotations

from kgen.emulator.operands import Instruction

__all__ = ["InFlight", "guard"]


class InFlight:
    """What a warp's unfinished wgmma own: register names, and by which instruction (a sequence number)."""

    def __init__(self):
        self.owners: dict[int, tuple[frozenset, frozenset, str]] = {}
        self.dirty = "the kernel began"  # why a fence is due; "" if none is

    def issue(self, w, seq: int, d: frozenset, a: frozenset, place: str) -> None:
        """A wgmma is issued. Fails: wgmma-unfenced-registers."""
        if self.dirty:
            text = f"no wgmma.fence since {self.dirty}: the order of its register accesses is undefined"
            w.machine.monitor.fail("wgmma-unfenced-registers", text)
        self.owners[seq] = (d, a, place)

    def finish(self, upto: int) -> None:
        """The wgmma before number `upto` were waited for."""
        for seq in [s for s in self.owners if s < upto]:
            del self.owners[seq]


def guard(instructions: list[Instruction], code: list, touched: list[tuple[set, set]]) -> None:
    """Wraps the closures that touch registers of wgmma instructions."""
    used: set[str] = set()
    for inst, (reads, writes) in zip(instructions, touched, strict=True):
        if inst.name.startswith("wgmma.mma_async"):
            used |= writes | {x.name for x in getattr(inst.operands[1], "items", ())}
    if not used:
        return
    for i, (reads, writes) in enumerate(touched):
        if instructions[i].op == "wgmma" or not (reads | writes) & used:
            continue
        code[i] = _wrapped(code[i], frozenset(reads & used), frozenset(writes & used), instructions[i])


def _wrapped(fn, reads: frozenset, writes: frozenset, inst: Instruction):
    def checked(w, m):
        flight = w.accumulators
        if flight.owners:
            _check(w, flight, reads, writes)
        if writes:
            flight.dirty = f"{inst.text[:60]} ({inst.where()})"
        return fn(w, m)

    return checked


def _check(w, flight: InFlight, reads: frozenset, writes: frozenset) -> None:
    for seq, (d, a, place) in flight.owners.items():
        bad = (reads & d) | (writes & (d | a))
        if bad:
            verb = "reads" if reads & d else "writes"
            text = f"{verb} register {min(bad)}, which wgmma {seq} of its warpgroup still has (issued at {place}); "
            w.machine.monitor.fail("wgmma-register-in-flight", text + "wgmma.wait_group must come first")
            return
