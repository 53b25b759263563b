"""wgmma of one warpgroup: issue, commit, wait. PTX ISA 9.7.15 (wgmma.mma_async and its fences).

The four warps of a warpgroup issue the same instructions, each in its own time; a group runs when a warp
waits for it and all four have committed it. Its operands are read and its accumulators written only then, as
late as the document allows. Groups complete in order.

Registers are the machine's: it passes callbacks, and the identities of registers for the checks. It calls
`note_write` and `check_access` for instructions that touch registers which any wgmma names.

Checks: wgmma-missing-fence, wgmma-registers-in-flight, wgmma-warps-disagree, wgmma-unwaited-at-exit, and
those of the operands' shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from kgen.emulator import fragments
from kgen.emulator.async_units import ClusterUnits, CtaUnits
from kgen.emulator.descriptors import (
    K_MAJOR,
    MN_MAJOR,
    check_operand,
    decode_wgmma,
    operand_words,
    read_operand,
)
from kgen.emulator.hazards import Flight
from kgen.emulator.mma import mma
from kgen.emulator.order import Actor, Facts
from kgen.errors import EmulatorError

WARPS = 4
M = 64
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}


@dataclass(frozen=True)
class WgmmaKind:
    """What the opcode and the immediates say. Formats as in mma.mma; trans: the operand is MN-major."""

    n: int
    a_format: str
    b_format: str
    d_format: str
    negate_a: bool = False
    negate_b: bool = False
    trans_a: bool = False
    trans_b: bool = False
    saturate: bool = False

    @property
    def bits(self) -> int:
        return _BITS[self.a_format]

    @property
    def k(self) -> int:
        """Elements of K of one instruction: 32 bytes per row."""
        return 256 // self.bits

    def check(self, a_in_registers: bool) -> None:
        """EmulatorError for what PTX has not. PTX ISA, "Matrix shape" tables of wgmma."""
        integer = self.a_format in ("s8", "u8", "b1")
        ok = 8 <= self.n <= 256 and self.n % 8 == 0
        if integer and self.n > 24 and self.n % 16:
            ok = False
        if not ok:
            raise EmulatorError(f"wgmma.m64n{self.n}: no such N for {self.a_format}")
        if _BITS[self.b_format] != self.bits:
            raise EmulatorError(f"wgmma: {self.a_format} x {self.b_format} does not exist")
        if (self.trans_a or self.trans_b) and self.bits != 16:
            raise EmulatorError(f"wgmma: {self.a_format} operands are K-major only")
        if self.trans_a and a_in_registers:
            raise EmulatorError("wgmma: A from registers cannot be transposed")

    def __str__(self) -> str:
        return f"wgmma m64n{self.n}k{self.k} {self.d_format}.{self.a_format}.{self.b_format}"


@dataclass
class Registers:
    """One warp's registers of an instruction. d, a: their identities, for the checks.

    read_acc() -> uint32 [32, registers], write_acc(the same), read_a() -> uint32 [32, 4]
    """

    read_acc: Callable[[], np.ndarray]
    write_acc: Callable[[np.ndarray], None]
    read_a: Callable[[], np.ndarray] | None = None
    d: frozenset[Hashable] = frozenset()
    a: frozenset[Hashable] = frozenset()


@dataclass(eq=False)
class _Op:
    kind: WgmmaKind
    a: int | None  # descriptor, None: registers
    b: int
    scale_d: bool
    index: int
    issued: int
    where: str
    facts: Facts  # what all warps knew that have issued it
    registers: dict[int, Registers] = field(default_factory=dict)
    flights: list[Flight] = field(default_factory=list)

    @property
    def same(self) -> tuple:
        return self.kind, self.a, self.b, self.scale_d


class Wgmma:
    """The wgmma queue of one warpgroup. `warp` is 0..3 within the warpgroup.

    arithmetic: "exact" or "fast", see mma.mma.
    """

    def __init__(self, units: ClusterUnits, cta: CtaUnits, name: str = "warpgroup", arithmetic: str = "exact"):
        self.units, self.cta, self.name, self.arithmetic = units, cta, name, arithmetic
        self.monitor = units.monitor
        self.done_fact = units.order.facts(1)  # counts finished instructions
        self._ops: list[_Op] = []  # all that were issued and not run, in order
        self._base = 0  # index of the first of them
        self._issued = [0] * WARPS
        self._groups: list[int] = []  # instructions issued up to each commit
        self._committed = [0] * WARPS
        self._run = 0  # groups
        self._fenced = [False] * WARPS
        self._dirty: list[set[Hashable]] = [set() for _ in range(WARPS)]
        self._busy_d: list[dict[Hashable, _Op]] = [{} for _ in range(WARPS)]
        self._busy_a: list[dict[Hashable, _Op]] = [{} for _ in range(WARPS)]

    # --- instructions -----------------------------------------------------------------------------------

    def fence(self, warp: int) -> None:
        """`wgmma.fence.sync.aligned`: registers touched before it may be named by wgmma after it."""
        self._fenced[warp] = True
        self._dirty[warp].clear()

    def mma(
        self, warp: int, actor: Actor, kind: WgmmaKind, a: int | None, b: int, scale_d: bool, registers: Registers
    ) -> None:
        """`wgmma.mma_async` by one warp. a: A's descriptor or None for registers; b: B's descriptor."""
        index = self._issued[warp]
        self._issued[warp] += 1
        self._check_fence(warp, kind, registers)
        at = index - self._base
        if at == len(self._ops):
            op = self._issue(actor, kind, a, b, scale_d, index)
        else:
            op = self._ops[at]
            if op.same != (kind, a, b, scale_d):
                text = f"warp {warp} of {self.name} issues {kind} where another warp of it issued {op.kind} with "
                self._fail("wgmma-warps-disagree", text + "other operands; all four must execute the same wgmma")
            op.facts = op.facts.meet(actor.known)
        op.registers[warp] = registers
        if len(op.registers) == WARPS:
            self._begin_reads(op)
        self._busy_d[warp].update(dict.fromkeys(registers.d, op))
        self._busy_a[warp].update(dict.fromkeys(registers.a, op))

    def commit(self, warp: int) -> None:
        """`wgmma.commit_group` by one warp."""
        group = self._committed[warp]
        self._committed[warp] += 1
        if group == len(self._groups):
            self._groups.append(self._issued[warp])
        elif self._groups[group] != self._issued[warp]:
            text = f"warp {warp} of {self.name} commits after {self._issued[warp]} wgmma, another after "
            self._fail("wgmma-warps-disagree", text + f"{self._groups[group]}")

    def wait_ready(self, warp: int, n: int) -> bool:
        """Could `wgmma.wait_group n` go on: have all four warps committed what it waits for?"""
        return min(self._committed) >= self._committed[warp] - n

    def wait(self, warp: int, actor: Actor, n: int) -> None:
        """`wgmma.wait_group n`; call it when `wait_ready`. Runs all but the warp's latest n groups."""
        last = max(self._committed[warp] - n, 0)
        while self._run < last:
            first = self._ops[0].issued if self._ops else self.monitor.now
            self._run_group(self._groups[self._run])
            self.monitor.event("wgmma-group", self.name, f"group {self._run}", first)
            self._run += 1
        if last:
            done = self._groups[last - 1]
            actor.known.learn(self.done_fact, done)
            for busy in (self._busy_d[warp], self._busy_a[warp]):
                for register in [r for r, op in busy.items() if op.index < done]:
                    del busy[register]

    def waits_for(self, warp: int, n: int) -> str:
        """For a deadlock report: which warps have not committed."""
        need = self._committed[warp] - n
        late = [w for w in range(WARPS) if self._committed[w] < need]
        return f"{self.name}: warps {late} have not committed wgmma group {need - 1}"

    def exit(self, warp: int) -> None:
        """The warp ends. Fails wgmma-unwaited-at-exit: the results of what is in flight are lost."""
        if self._busy_d[warp]:
            op = next(iter(self._busy_d[warp].values()))
            self._fail("wgmma-unwaited-at-exit", f"warp {warp} of {self.name} exits with {op.kind} in flight")

    # --- registers --------------------------------------------------------------------------------------

    def busy(self, warp: int) -> bool:
        """Are registers of the warp in flight at all? If not, `check_access` has nothing to say."""
        return bool(self._busy_d[warp]) or bool(self._busy_a[warp])

    def check_access(self, warp: int, reads: Iterable[Hashable], writes: Iterable[Hashable], what: str) -> None:
        """Another instruction of the warp touches registers. Fails: wgmma-registers-in-flight."""
        busy_d, busy_a = self._busy_d[warp], self._busy_a[warp]
        for register, verb in (*((r, "reads") for r in reads), *((r, "writes") for r in writes)):
            op = busy_d.get(register)
            part = "an accumulator"
            if op is None and verb == "writes":
                op, part = busy_a.get(register), "an A operand"
            if op is not None:
                text = f"{what} {verb} {register}, {part} of {op.kind} (issued at step {op.issued}), before the "
                self._fail("wgmma-registers-in-flight", text + "wgmma.wait_group that covers it")
                return

    def note_write(self, warp: int, registers: Iterable[Hashable]) -> None:
        """Another instruction wrote registers: the next wgmma that names them needs a wgmma.fence first."""
        self._dirty[warp].update(registers)

    def _check_fence(self, warp: int, kind: WgmmaKind, registers: Registers) -> None:
        if not self._fenced[warp]:
            self._fail("wgmma-missing-fence", f"{kind}: no wgmma.fence before the first wgmma")
            self._fenced[warp] = True
        dirty = self._dirty[warp]
        if not dirty.isdisjoint(registers.d) or not dirty.isdisjoint(registers.a):
            changed = dirty & (registers.d | registers.a)
            text = f"{kind}: {min(map(str, changed))} was changed after the last wgmma.fence"
            self._fail("wgmma-missing-fence", text)
        busy = self._busy_d[warp]
        if {(op.kind.n, op.kind.d_format) for op in set(busy.values())} <= {(kind.n, kind.d_format)}:
            return
        for register in registers.d:
            op = busy.get(register)
            if op is not None and (op.kind.n, op.kind.d_format) != (kind.n, kind.d_format):
                text = f"{kind}: its accumulator is in flight in {op.kind}, of another shape, without wgmma.fence"
                self._fail("wgmma-missing-fence", text)
                return

    # --- execution --------------------------------------------------------------------------------------

    def _issue(self, actor: Actor, kind: WgmmaKind, a: int | None, b: int, scale_d: bool, index: int) -> _Op:
        kind.check(a is None)
        op = _Op(kind, a, b, scale_d, index, self.monitor.now, self.monitor.place(), actor.release())
        for word, trans in ((a, kind.trans_a), (b, kind.trans_b)):
            if word is not None:
                check_operand(decode_wgmma(word), max(kind.bits, 8), MN_MAJOR if trans else K_MAJOR)
        self._ops.append(op)
        return op

    def _begin_reads(self, op: _Op) -> None:
        """All four warps have issued it, so it may run: each must have synchronised with the operands' writers."""
        kind, hazards = op.kind, self.cta.hazards
        esz = max(kind.bits // 8, 1)
        for what, word, rows, trans in (("A", op.a, M, kind.trans_a), ("B", op.b, kind.n, kind.trans_b)):
            if word is not None:
                words = operand_words(decode_wgmma(word), rows, 32 // esz, esz, MN_MAJOR if trans else K_MAJOR)
                label = f"{kind} ({what})"
                op.flights.append(hazards.begin_read(words, op.facts, label, self.name, self.done_fact, op.index))

    def _run_group(self, until: int) -> None:
        results: dict[frozenset | int, tuple[_Op, np.ndarray]] = {}
        while self._base < until:
            op = self._ops.pop(0)
            self._base += 1
            outer, self.monitor.origin = self.monitor.origin, op.where
            try:
                # Accumulators that a group names again stay here in between.
                key = op.registers[0].d or op.index
                held = results.get(key)
                if held is None or (held[0].kind.n, held[0].kind.d_format) != (op.kind.n, op.kind.d_format):
                    self._store(results)
                    held = None
                c = None if not op.scale_d else held[1] if held else self._accumulators(op)
                results[key] = (op, self._compute(op, c))
                for flight in op.flights:
                    self.cta.hazards.end(flight)
            finally:
                self.monitor.origin = outer
            self.monitor.event("wgmma", self.name, str(op.kind), op.issued)
        self._store(results)

    def _compute(self, op: _Op, c: np.ndarray | None) -> np.ndarray:
        kind = op.kind
        a = self._a_registers(op) if op.a is None else self._operand(op.a, M, kind, kind.trans_a)
        b = self._operand(op.b, kind.n, kind, kind.trans_b)
        return mma(
            a, b, c, kind.a_format, kind.b_format, kind.d_format, unit="wgmma", arithmetic=self.arithmetic,
            negate_a=kind.negate_a, negate_b=kind.negate_b, saturate=kind.saturate,
        )  # fmt: skip

    def _operand(self, word: int, rows: int, kind: WgmmaKind, trans: bool) -> np.ndarray:
        bits = max(kind.bits, 8)
        memory = self.cta.shared.bytes
        major = MN_MAJOR if trans else K_MAJOR
        codes = read_operand(memory, decode_wgmma(word), rows, 256 // bits, bits, major)
        return np.unpackbits(codes, axis=1, bitorder="little") if kind.bits == 1 else codes

    def _a_registers(self, op: _Op) -> np.ndarray:
        bits = max(op.kind.bits, 8)
        values = np.concatenate([op.registers[w].read_a() for w in range(WARPS)])
        row, col = fragments.wgmma_a(bits)
        matrix = np.zeros((M, 256 // bits), {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])
        matrix[row, col] = fragments.unpack(values, bits)
        return np.unpackbits(matrix, axis=1, bitorder="little") if op.kind.bits == 1 else matrix

    def _accumulators(self, op: _Op) -> np.ndarray:
        half = op.kind.d_format == "f16"
        values = np.concatenate([op.registers[w].read_acc() for w in range(WARPS)])
        row, col = fragments.wgmma_d(op.kind.n, half)
        matrix = np.zeros((M, op.kind.n), np.uint16 if half else np.uint32)
        matrix[row, col] = fragments.unpack(values, 16) if half else values
        return matrix

    def _store(self, results: dict) -> None:
        for op, matrix in results.values():
            half = op.kind.d_format == "f16"
            values = matrix[fragments.wgmma_d(op.kind.n, half)]
            values = fragments.pack(values, 16) if half else values
            for w in range(WARPS):
                op.registers[w].write_acc(values[32 * w : 32 * w + 32])
        results.clear()

    def _fail(self, check: str, text: str) -> None:
        self.monitor.fail(check, text)
