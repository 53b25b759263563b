"""Reads of registers that were never written.

Which registers might be read before they are written is found once, from the control flow; only the instructions
that touch those keep account of written lanes while the kernel runs, so that all others cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgen.emulator.operands import Instruction, Label, Symbol

__all__ = ["basic_blocks", "instrument"]

# Copies of values that nobody will look at are how compilers write "any value": they are no use yet.
_COPIES = ("mov", "selp")


def instrument(instructions: list[Instruction], tables, code: list, touched: list[tuple[set, set]]) -> None:
    """Wraps the closures in `code` that may read an unwritten register. `touched`: (read, written) names."""
    suspects = _maybe_unwritten(instructions, tables, touched)
    if not suspects:
        return
    tracked = {name for _, name in suspects}
    for i, (_, writes) in enumerate(touched):
        wrong = sorted(name for at, name in suspects if at == i)
        kept = sorted(writes & tracked)
        if (wrong and instructions[i].op not in _COPIES) or kept:
            checked = wrong if instructions[i].op not in _COPIES else []
            code[i] = _wrapped(code[i], checked, kept, instructions[i])


def _wrapped(fn, reads: list[str], writes: list[str], inst: Instruction):
    guard = inst.guard.name if inst.guard is not None else None
    read_set, write_set = frozenset(reads), frozenset(writes)

    def checked(w, m):
        if not read_set <= w.complete:
            check(w, m)
        if write_set <= w.complete:
            return fn(w, m)
        took = True if m is True else m
        if guard is not None:
            took = (w.v[w.program.guards[guard]] ^ inst.guard.negated) & took
        result = fn(w, m)
        if result is None:
            for name in writes:
                flags = w.written.get(name)
                if flags is None:
                    flags = w.written[name] = np.zeros(32, bool)
                flags |= took
                if flags.all():
                    w.complete.add(name)
        return result

    def check(w, m):
        for name in reads:
            flags = w.written.get(name)
            missing = np.array(True) if flags is None else ~flags
            if m is not True:
                missing = missing & m
            # A guarded instruction reads only in the lanes whose guard is true; the guard itself in all.
            if guard is not None and name != guard and inst.op != "bra":
                missing = missing & (w.v[w.program.guards[guard]] ^ inst.guard.negated)
            if missing.any():
                lanes = np.flatnonzero(np.broadcast_to(missing, 32))
                text = f"lane {int(lanes[0])} reads register {name}, which was never written"
                w.machine.monitor.fail("uninitialised-register", text)

    checked.check = _Written(fn, read_set | write_set)
    return checked


@dataclass(frozen=True)
class _Written:
    """The check, for blocks.py: nothing to do once all its registers are written."""

    inner: object
    names: frozenset[str]

    def add_to(self, conditions) -> None:
        conditions.complete |= self.names


def _maybe_unwritten(instructions, tables, touched) -> list[tuple[int, str]]:
    """(instruction index, register) of every read that some path reaches without a write."""
    numbers: dict[str, int] = {}

    def bits(names) -> int:
        value = 0
        for name in names:
            value |= 1 << numbers.setdefault(name, len(numbers))
        return value

    reads = [bits(r) for r, _ in touched]
    # A guarded write may not happen.
    writes = [0 if inst.guard is not None else bits(w) for inst, (_, w) in zip(instructions, touched, strict=True)]
    blocks, after = basic_blocks(instructions, tables)
    everything = (1 << len(numbers)) - 1
    made = {}
    for start, end in blocks.items():
        total = 0
        for i in range(start, end):
            total |= writes[i]
        made[start] = total
    known = {start: everything for start in blocks}
    known[0] = 0
    work = [0]
    seen = set()
    while work:
        start = work.pop()
        seen.add(start)
        out = known[start] | made[start]
        for target in after[start]:
            merged = known[target] & out
            if merged != known[target] or target not in seen:
                known[target] = merged
                seen.add(target)
                work.append(target)
    names = {v: k for k, v in numbers.items()}
    found = []
    for start in sorted(seen):
        have = known[start]
        for i in range(start, blocks[start]):
            missing = reads[i] & ~have
            while missing:
                low = missing & -missing
                found.append((i, names[low.bit_length() - 1]))
                missing ^= low
            have |= writes[i]
    return found


def basic_blocks(instructions, tables):
    """({start: end}, {start: successors}) of the basic blocks."""
    n = len(instructions)
    starts = {0}
    jumps: dict[int, list[int]] = {}
    for i, inst in enumerate(instructions):
        if inst.op == "bra":
            targets = [x.index for x in inst.operands if isinstance(x, Label)]
        elif inst.op == "brx":
            targets = [x.index for x in tables[inst.operands[1].name] if isinstance(inst.operands[1], Symbol)]
        elif inst.op in ("ret", "exit", "trap"):
            targets = []
        else:
            continue
        if inst.guard is not None:
            targets = [*targets, i + 1]
        jumps[i] = [t for t in targets if t < n]
        starts.update(jumps[i])
        if i + 1 < n:
            starts.add(i + 1)
    ordered = sorted(starts)
    blocks = dict(zip(ordered, [*ordered[1:], n], strict=True))
    after = {s: jumps.get(e - 1, [e] if e < n else []) for s, e in blocks.items()}
    return blocks, after
