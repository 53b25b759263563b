"""Straight runs of instructions, translated once into numpy source that does many of them in one call.

A run is a stretch of one basic block whose instructions only compute or access memory: nothing in it can wait, jump or
talk to an asynchronous unit, so no other warp could tell that its instructions changed places. They are put into
levels, each after all that it depends on; what stands in one level and does the same (one lanewise.signature, or one
kind of access) is one call over all their lanes. Warps of 32 running lanes use the runs, others single instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kgen.emulator.bursts import burst
from kgen.emulator.lanewise import signature
from kgen.emulator.registers import basic_blocks

__all__ = ["whole_warp_code"]

_SHORTEST, _LONGEST = 3, 256  # instructions of a run; other warps wait while it runs


def whole_warp_code(program) -> list:
    """One closure per instruction for warps whose 32 lanes all run: as `program.code`, but the one at the start of a
    run does the whole run and returns how many instructions that were, negated. Runs are translated when they come up
    again."""
    code = list(program.code)
    for start, end in basic_blocks(program.instructions, program.tables)[0].items():
        at = start
        while at < end:
            run = at
            while run < end and run - at < _LONGEST and _under(program.code[run])[0] is not None:
                run += 1
            if run - at >= _SHORTEST:
                code[at] = _translated_later(program, code, at, run)
            at = max(run, at + 1)
    return code


def _translated_later(program, code: list, start: int, end: int):
    once = program.code[start]

    def first(w, m):
        code[start] = second
        return once(w, m)

    def second(w, m):
        code[start] = _watched(program, start, end)
        return code[start](w, m)

    return first


# -- what stands around an instruction -------------------------------------------------------------------
@dataclass
class _Conditions:
    """What has to hold for a run to need none of the checks that stand around its instructions."""

    complete: set[str] = field(default_factory=set)  # registers that all lanes have written
    loading: bool = False  # no tcgen05.ld is under way
    multiplying: bool = False  # no wgmma owns registers
    changed: set[str] = field(default_factory=set)  # registers to tell wgmma of


def _under(fn):
    """(the instruction itself, the checks around it); None in place of one that cannot be part of a run."""
    checks = []
    while (check := getattr(fn, "check", None)) is not None:
        checks.append(check)
        fn = check.inner
    return (fn if hasattr(fn, "lanewise") or hasattr(fn, "access") else None), checks


def _watched(program, start: int, end: int):
    """The run behind one test of all its conditions; where they do not hold, its first instruction by itself."""
    conditions = _Conditions()
    for fn in program.code[start:end]:
        for check in _under(fn)[1]:
            check.add_to(conditions)
    run, once, n = _translate(program, start, end), program.code[start], start - end
    complete, changed = frozenset(conditions.complete), conditions.changed
    loading, multiplying = conditions.loading, conditions.multiplying

    def fn(w, m):
        if (loading and w.loading) or not complete <= w.complete:
            return once(w, m)
        if multiplying and (queue := w.warpgroup) is not None:
            if queue.busy(w.index % 4):
                return once(w, m)
            queue.note_write(w.index % 4, changed)
        run(w)
        return n

    return fn


# -- order -----------------------------------------------------------------------------------------------
class _Memory:
    """Levels of the accesses to one state space so far: loads may change places, stores of one kind share a level."""

    def __init__(self):
        self.load = self.store = -1
        self.key = None

    def earliest(self, access) -> int:
        if not access.store:
            return self.store + 1
        return max(self.load + 1, self.store + (access.key != self.key))

    def done(self, access, level: int) -> None:
        if access.store:
            self.store, self.key = level, access.key
        else:
            self.load = max(self.load, level)


def _levels(program, start: int, end: int) -> list[dict]:
    """For each level, the instructions (indices, in order) that can be one call, by what makes them so."""
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    memories = {"global": _Memory(), "shared": _Memory()}
    levels: list[dict] = []
    for i in range(start, end):
        fn = _under(program.code[i])[0]
        reads, writes = program.touched[i]
        level = max((written.get(name, -1) + 1 for name in reads | writes), default=0)
        level = max(level, max((read.get(name, -1) + 1 for name in writes), default=0))
        access = getattr(fn, "access", None)
        if access is not None:
            level = max(level, memories[access.space].earliest(access))
            memories[access.space].done(access, level)
            key = access.key
        else:
            what = fn.lanewise
            views = tuple(program.places[s][0] for s in (*what.outs, *what.sources))
            key = (signature(what.f), len(what.outs), views)
        read.update((name, max(level, read.get(name, -1))) for name in reads)
        written.update((name, level) for name in writes)
        while len(levels) <= level:
            levels.append({})
        levels[level].setdefault(key, []).append(i)
    return levels


# -- source ----------------------------------------------------------------------------------------------
def _settled(result, dtype):
    """A result as values of the rows it is for, not shared with any other array."""
    result = np.asarray(result)
    if result.dtype != dtype:
        return result.astype(dtype)
    return result if result.base is None else result.copy()


class _Source:
    """Lines of the function of a run, and the values they name."""

    def __init__(self, program, start: int):
        self.program = program
        self.lines = [f"def run_from_{start}(w):", "    b = w.b"]
        self.names: dict[str, object] = {"settled": _settled}
        self.fresh: dict[tuple, str] = {}  # (view, rows) -> the variable that holds just that

    def name(self, kind: str, value) -> str:
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name

    def rows(self, rows: tuple[int, ...]) -> str:
        """The index of rows, as source."""
        if rows == tuple(range(rows[0], rows[0] + len(rows))):
            return f"{rows[0]}:{rows[0] + len(rows)}"
        return self.name("rows", np.array(rows))

    def gathered(self, view: int, rows: tuple[int, ...]) -> str:
        """A variable with the values of rows, one after the other."""
        if (view, rows) not in self.fresh:
            name = self.fresh[view, rows] = f"x{len(self.lines)}"
            self.lines.append(f"    {name} = b[{view}][{self.rows(rows)}].reshape(-1)")
        return self.fresh[view, rows]

    def stale(self, places) -> None:
        """These rows change: variables that hold any of them are no longer theirs."""
        views = self.program.views
        changed = {(views[view][0], row) for view, row in places}
        self.fresh = {k: v for k, v in self.fresh.items() if changed.isdisjoint((views[k[0]][0], r) for r in k[1])}

    def alone(self, i: int, fn) -> None:
        """One instruction, by its own closure."""
        if hasattr(fn, "access"):
            self.lines.append(f"    w.at = {i}")
        self.lines.append(f"    {self.name('one', fn)}(w, True)")
        self.stale(_changed(self.program, fn))

    def burst(self, members: list[int], fns: list) -> None:
        """Loads or stores of one kind."""
        together = burst([fn.access for fn in fns], list(zip(members, fns, strict=True)))
        self.lines.append(f"    {self.name('burst', together)}(w)")
        for fn in fns:
            self.stale(_changed(self.program, fn))

    def together(self, members: list) -> None:
        """The call of lanewise instructions of one kind."""
        places, first = self.program.places, members[0]
        sources = [tuple(places[m.sources[j]] for m in members) for j in range(len(first.sources))]
        outs = [tuple(places[m.outs[j]] for m in members) for j in range(len(first.outs))]
        arguments = ", ".join(self.gathered(s[0][0], tuple(row for _, row in s)) for s in sources)
        result = f"r{len(self.lines)}"
        self.lines.append(f"    {result} = {self.name('f', first.f)}({arguments})")
        self.stale(place for out in outs for place in out)
        for j, out in enumerate(outs):
            view, rows = out[0][0], tuple(row for _, row in out)
            dtype = self.name("dtype", self.program.views[view][1])
            value = f"y{len(self.lines)}"
            self.lines.append(f"    {value} = settled({result if len(outs) == 1 else f'{result}[{j}]'}, {dtype})")
            self.lines.append(f"    b[{view}][{self.rows(rows)}] = {value}.reshape({len(rows)}, 32)")
            self.fresh[view, rows] = value

    def function(self):
        exec(compile("\n".join(self.lines), self.lines[0], "exec"), self.names)
        return self.names[self.lines[0][4:].split("(")[0]]


def _translate(program, start: int, end: int):
    """fn(warp) that does the instructions start..end-1."""
    source = _Source(program, start)
    for level in _levels(program, start, end):
        for members in level.values():
            fns = [_under(program.code[i])[0] for i in members]
            if len(members) == 1:
                source.alone(members[0], fns[0])
            elif hasattr(fns[0], "access"):
                source.burst(members, fns)
            else:
                source.together([fn.lanewise for fn in fns])
    return source.function()


def _changed(program, fn) -> list[tuple[int, int]]:
    """The places that an instruction writes."""
    if hasattr(fn, "access"):
        return [] if fn.access.store else list(fn.access.items)
    return [program.places[s] for s in fn.lanewise.outs]
