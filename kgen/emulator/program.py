"""A kernel bound to closures: register rows, addresses of variables, one Python function per instruction.

Bound code reads and writes `warp.v[slot]`: a numpy row of 32 lanes of a type. A slot is a register seen as one
type, a constant, or a special register; all are found here, once, so that running an instruction is little more
than one numpy call.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from kgen.emulator import blocks, lanewise
from kgen.emulator.accumulators import guard
from kgen.emulator.inline import Flat, flatten
from kgen.emulator.memory import LOCAL_WINDOW, SHARED_BASE, GlobalMemory
from kgen.emulator.operands import Address, FloatImm, Function, Imm, Instruction, Module, Reg, Sink, Special, Symbol
from kgen.emulator.ptx import parse
from kgen.emulator.reader import type_size
from kgen.emulator.registers import instrument
from kgen.emulator.registry import Mods, find
from kgen.errors import EmulatorError

_ASYNCHRONOUS = ("cp.async", "cp.reduce", "wgmma", "tcgen05.mma", "tcgen05.cp", "st.async", "red.async", "mbarrier")

__all__ = ["Binder", "Program", "dtype_of", "load"]

_DTYPES = {
    "u8": np.uint8, "s8": np.int8, "b8": np.uint8,
    "u16": np.uint16, "s16": np.int16, "b16": np.uint16, "f16": np.float16, "bf16": np.uint16,
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "f32": np.float32,
    "f16x2": np.uint32, "bf16x2": np.uint32, "tf32": np.uint32,
    "u64": np.uint64, "s64": np.int64, "b64": np.uint64, "f64": np.float64, "f32x2": np.uint64,
    "pred": np.bool_,
}  # fmt: skip
_BANKS = {"pred": np.bool_, 1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def dtype_of(name: str):
    """The numpy type of a PTX type. bf16, tf32 and packed types are their bit patterns."""
    if name not in _DTYPES:
        raise EmulatorError(f"type .{name} is not modelled here")
    return _DTYPES[name]


@dataclass
class Program:
    """A bound kernel. `shared_static` and `local_size` are bytes; `parameters` are the kernel's .param variables."""

    name: str
    target: str
    function: Function
    instructions: list[Instruction]
    code: list
    banks: dict
    quads: int
    slots: list
    views: list
    touched: list[tuple[set[str], set[str]]]  # registers that each instruction reads, writes
    tables: dict
    shared_static: int
    shared_dynamic_at: int
    local_size: int
    memory: GlobalMemory
    param_base: int
    param_offsets: list[int]
    param_size: int
    guards: dict[str, int]

    @cached_property
    def asynchronous(self) -> bool:
        """The kernel has instructions whose effect on shared memory comes later than they do."""
        return any(i.name.startswith(_ASYNCHRONOUS) for i in self.instructions)

    @cached_property
    def whole_warp_code(self) -> list:
        """`code` for warps whose lanes all run; see blocks.py."""
        return blocks.whole_warp_code(self)

    @cached_property
    def initial(self) -> dict:
        """The banks of a warp before it starts: constants in place, registers zero."""
        banks = {k: np.zeros((n, 32), t) for k, (n, t) in self.banks.items()}
        for slot in self.slots:
            if slot.constant is not None:
                banks[slot.bank].view(slot.dtype)[slot.row] = slot.constant
        return banks

    @cached_property
    def filled(self) -> list:
        """(slot number, what fills its row for a warp) of special registers and shared addresses."""
        return [(i, s.fill) for i, s in enumerate(self.slots) if s.fill is not None]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """(view, row) of every slot."""
        return [(s.view, s.row) for s in self.slots]

    def rows(self, warp) -> list:
        """The row of every slot for a new warp, whose banks are copies of `initial`."""
        cut = [list(view) for view in warp.b]  # in one go, that is cheaper than one by one
        cut.append(warp.quads)
        rows = [cut[view][row] for view, row in self.places]
        for i, fill in self.filled:
            rows[i][:] = fill(warp)
        return rows


@dataclass(frozen=True)
class Slot:
    """Where an operand's 32 values lie: a row of a bank, seen as a type. `view` numbers (bank, dtype); -1: a quad.

    constant: what the row holds from the start; fill: what a warp puts there when it starts.
    """

    bank: object
    row: int
    dtype: np.dtype
    view: int
    constant: object = None
    fill: object = None


class Binder:
    """Resolves operands to slots while the closures are made."""

    def __init__(self, module: Module, entry: Function, flat: Flat):
        self.module, self.entry, self.flat = module, entry, flat
        self.registers: dict[str, tuple] = {}
        self.counts = dict.fromkeys(_BANKS, 0)
        self.quads = 0
        self.slots: list[Slot] = []
        self.views: list[tuple[object, np.dtype]] = []  # (bank, dtype)
        self.known: dict = {}
        self.memory = GlobalMemory()
        self.index = 0  # of the instruction being bound
        self.read: set[str] = set()  # registers that the instruction being bound reads
        self.written: set[str] = set()
        self._layout()

    # -- variables ---------------------------------------------------------------------------------------
    def _layout(self) -> None:
        self.addresses: dict[str, tuple[str, int]] = {}
        offset = 0
        self.param_offsets = []
        for v in self.entry.params:
            offset = -(-offset // v.align) * v.align
            self.param_offsets.append(offset)
            offset += v.size
        self.param_size = offset
        self.param_base = self.memory.add("the kernel parameters", bytes(max(offset, 1)), 256, writable=False)
        for v, at in zip(self.entry.params, self.param_offsets, strict=True):
            self.addresses[v.name] = ("global", self.param_base + at)
        variables = list({**self.module.variables, **self.flat.variables}.values())
        shared = local = 0
        self.dynamic = [v for v in variables if v.space == "shared" and v.size is None]
        placed = []
        for v in variables:
            if v.name in self.addresses:
                continue
            if v.space == "shared" and v.size is not None:
                shared = -(-shared // v.align) * v.align
                self.addresses[v.name] = ("shared", SHARED_BASE + shared)
                shared += v.size
            elif v.space in ("local", "param"):
                local = -(-local // v.align) * v.align
                self.addresses[v.name] = ("local", local)
                local += v.size
            elif v.space in ("global", "const"):
                data = v.init.ljust(v.size or 1, b"\0")
                at = self.memory.add(f"variable {v.name}", data, max(v.align, 16), v.space != "const")
                self.addresses[v.name] = ("global", at)
                placed.append(v)
        for v in placed:
            for at, symbol in v.relocations:
                raise EmulatorError(f"variable {v.name}: an initialiser with an address ({symbol.name} at {at})")
        self.shared_static, self.local_size = shared, max(-(-local // 16) * 16, 16)
        align = max((v.align for v in self.dynamic), default=16)
        self.shared_dynamic_at = -(-(SHARED_BASE + shared) // align) * align
        for v in self.dynamic:
            self.addresses[v.name] = ("shared", self.shared_dynamic_at)

    def space_of(self, symbol: Symbol) -> str:
        """global, shared or local."""
        return self.addresses[symbol.name][0]

    # -- slots -------------------------------------------------------------------------------------------
    def view(self, bank, dtype) -> int:
        """The number of a bank seen as a type: `warp.b[number]` is [rows, 32]."""
        if (bank, dtype) not in self.views:
            self.views.append((bank, dtype))
        return self.views.index((bank, dtype))

    def _slot(self, key, bank, row: int | None, dtype, **content) -> int:
        """The slot of a key; `row` None: a new row of the bank."""
        if key not in self.known:
            if row is None:
                row = self.counts[bank]
                self.counts[bank] += 1
            self.known[key] = len(self.slots)
            self.slots.append(Slot(bank, row, dtype, self.view(bank, dtype), **content))
        return self.known[key]

    def place(self, slot: int, dtype=None) -> tuple[int, int]:
        """(view, row) of a slot, seen as another type if one is given."""
        s = self.slots[slot]
        return (s.view if dtype is None else self.view(s.bank, np.dtype(dtype))), s.row

    def register(self, reg: Reg) -> tuple:
        """(bank, index) of a register."""
        if reg.name not in self.registers:
            bank = "pred" if reg.type == "pred" else type_size(reg.type)
            if bank == 16:
                self.registers[reg.name] = (16, self.quads)
                self.quads += 1
            else:
                self.registers[reg.name] = (bank, self.counts[bank])
                self.counts[bank] += 1
        return self.registers[reg.name]

    def const(self, value, dtype) -> int:
        """A slot holding `value` (wrapped into an integer type) in every lane."""
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            exact = np.array(int(value) & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)
        else:
            exact = np.array(value, dtype)
        bank = "pred" if dtype == np.bool_ else dtype.itemsize
        return self._slot(("const", dtype.str, exact.tobytes()), bank, None, dtype, constant=exact)

    def src(self, x, type_: str) -> int:
        """The slot of a source operand read as `type_` (a register may be wider: its low part is read)."""
        dtype = np.dtype(dtype_of(type_))
        if isinstance(x, Reg):
            bank, index = self.register(x)
            self.read.add(x.name)
            if bank == 16 or (bank == "pred") != (type_ == "pred"):
                raise EmulatorError(f"register {x.name} (.{x.type}) cannot be read as .{type_}")
            if bank != "pred" and bank < dtype.itemsize:
                raise EmulatorError(f"register {x.name} (.{x.type}) is too narrow to be read as .{type_}")
            return self._slot((bank, index, dtype.str), bank, index, dtype)
        if isinstance(x, Imm):
            return self.const(x.value, dtype)
        if isinstance(x, FloatImm):
            if dtype.kind == "f":
                exact = np.array(x.bits, f"u{x.width // 8}").view(f"f{x.width // 8}")
                return self.const(exact.astype(dtype), dtype)
            bits = x.bits if dtype.itemsize * 8 == x.width else struct.unpack("<I", struct.pack("<f", x.value))[0]
            return self.const(bits, dtype)
        if isinstance(x, Symbol):
            return self.address_slot(x, type_)
        if isinstance(x, Special):
            from kgen.emulator.special import special

            bank = "pred" if dtype == np.bool_ else dtype.itemsize
            return self._slot(("special", x.name, type_), bank, None, dtype, fill=special(x.name, dtype))
        raise EmulatorError(f"an operand of the kind {type(x).__name__} is not possible here")

    def address_slot(self, x: Symbol, type_: str) -> int:
        """The address of a variable, in its own state space."""
        dtype = np.dtype(dtype_of(type_))
        if x.name not in self.addresses:
            raise EmulatorError(f"{x.name} has no address (function pointers are not modelled)")
        space, at = self.addresses[x.name]
        at += x.offset
        if space != "shared":
            return self.const(at, dtype)

        def shared(warp):
            return warp.cta.shared.base + at

        return self._slot(("shared", at, dtype.str), dtype.itemsize, None, dtype, fill=shared)

    def dst(self, x, type_: str) -> int | None:
        """The slot of a destination written as `type_`; None for `_`. The register has exactly that width."""
        if isinstance(x, Sink):
            return None
        if not isinstance(x, Reg):
            raise EmulatorError("the destination must be a register")
        bank, index = self.register(x)
        self.written.add(x.name)
        dtype = np.dtype(dtype_of(type_))
        if bank == 16 or (bank == "pred") != (type_ == "pred") or (bank != "pred" and bank != dtype.itemsize):
            raise EmulatorError(f"register {x.name} (.{x.type}) cannot be written as .{type_}")
        return self._slot((bank, index, dtype.str), bank, index, dtype)

    def wide_dst(self, x, type_: str) -> int | None:
        """As `dst`, but the register may be wider (ld, cvt): the value is extended as `type_` is signed."""
        if isinstance(x, Sink):
            return None
        bank, _ = self.register(x)
        if bank in ("pred", 16) or bank == np.dtype(dtype_of(type_)).itemsize:
            return self.dst(x, type_)
        if bank < np.dtype(dtype_of(type_)).itemsize:
            raise EmulatorError(f"register {x.name} (.{x.type}) is too narrow to be written as .{type_}")
        return self.dst(x, ("s" if type_[0] == "s" else "u") + str(8 * bank))

    def quad(self, x, write: bool = False) -> int:
        """The slot of a .b128 register, read or written: uint64 [32, 2], low half first."""
        if not isinstance(x, Reg) or self.register(x)[0] != 16:
            raise EmulatorError("a .b128 register is needed here")
        (self.written if write else self.read).add(x.name)
        key = ("quad", x.name)
        if key not in self.known:
            self.known[key] = len(self.slots)
            self.slots.append(Slot(16, self.register(x)[1], np.dtype(np.uint64), -1))
        return self.known[key]

    def pred(self, x) -> int:
        """The slot of a source predicate, its negation left to the caller (x.negated)."""
        return self.src(x, "pred")

    def rows(self, items, width: int, write: bool = True) -> np.ndarray | None:
        """Bank indices of registers of `width` bytes, for one gather; None if any is not such a register."""
        if not all(isinstance(x, Reg) for x in items):
            return None
        places = [self.register(x) for x in items]
        (self.written if write else self.read).update(x.name for x in items)
        if any(bank != width for bank, _ in places):
            return None
        return np.array([index for _, index in places])

    def address(self, x: Address):
        """fn(warp) -> uint64[32] of a [base+offset] operand, and the state space if a variable is its base."""
        base = x.base
        if isinstance(base, Symbol):
            slot = self.address_slot(Symbol(base.name, base.offset + x.offset), "u64")
            return (lambda w: w.v[slot]), self.space_of(base)
        if isinstance(base, Imm):
            slot = self.const(base.value + x.offset, np.uint64)
            return (lambda w: w.v[slot]), None
        if not isinstance(base, Reg):
            raise EmulatorError("an address must be a register, a variable or a number")
        wide = self.register(base)[0] == 8
        slot = self.src(base, "u64" if wide else "u32")
        dtype = np.uint64 if wide else np.uint32
        if x.offset == 0:
            if wide:
                return (lambda w: w.v[slot]), None
            return (lambda w: w.v[slot].astype(np.uint64)), None
        offset = dtype(x.offset & (0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF))
        if wide:
            return (lambda w: w.v[slot] + offset), None
        return (lambda w: (w.v[slot] + offset).astype(np.uint64)), None

    # -- instructions ------------------------------------------------------------------------------------
    def bind(self, inst: Instruction):
        """The closure of one instruction."""
        try:
            handler, family = find(inst)
            mods = Mods(inst, family)
            fn = handler(self, inst, mods)
            mods.done()
        except EmulatorError as error:
            raise EmulatorError(f"{error}\n  at {inst.where()}: {inst.text}") from None
        except (IndexError, ValueError, TypeError, AttributeError) as error:
            raise EmulatorError(f"malformed operands ({error})\n  at {inst.where()}: {inst.text}") from error
        if inst.guard is None or getattr(handler, "guards_itself", False):
            return fn
        return self._guarded(inst, fn)

    def _guarded(self, inst: Instruction, fn):
        slot, negated = self.src(inst.guard, "pred"), inst.guard.negated
        count = np.count_nonzero

        def guarded(w, m):
            p = ~w.v[slot] if negated else w.v[slot]
            if m is not True:
                p = p & m
            n = count(p)
            if n == 32:
                return fn(w, True)
            if n:
                return fn(w, p.copy())
            return None

        if hasattr(fn, "lanewise"):
            guarded.lanewise = lanewise.guarded(fn.lanewise, slot, negated)
        return guarded


@lru_cache(maxsize=4)  # the cases of one kernel come one after the other
def load(ptx: str, kernel: str | None = None) -> Program:
    """Parses and binds a kernel (by name or a unique part of it; the only entry if None).

    A program may be launched any number of times, each time with memory of its own (`memory.fresh()`).
    """
    import kgen.emulator.isa  # noqa: F401  (fills the registry)

    module = parse(ptx)
    entries = [f for f in module.entries if kernel is None or f.name == kernel]
    if not entries and kernel is not None:
        entries = [f for f in module.entries if kernel in f.name]
    if len(entries) != 1:
        names = ", ".join(f.name for f in module.entries) or "none"
        raise EmulatorError(f"which kernel? the module has {names}")
    entry = entries[0]
    flat = flatten(module, entry)
    b = Binder(module, entry, flat)
    code = []
    touched = []
    for b.index, inst in enumerate(flat.body):
        b.read, b.written = set(), set()
        code.append(b.bind(inst))
        touched.append((b.read, b.written))
    end = Instruction("exit", (), (), None, "(end of the kernel)", flat.body[-1].line if flat.body else 0)
    flat.body.append(end)
    b.index = len(code)
    code.append(b.bind(end))
    touched.append((set(), set()))
    guard(flat.body, code, touched)
    instrument(flat.body, flat.tables, code, touched)
    guards = {i.guard.name: b.src(i.guard, "pred") for i in flat.body if i.guard is not None}
    banks = {k: (max(n, 1), _BANKS[k]) for k, n in b.counts.items()}
    return Program(
        entry.name, module.target, entry, flat.body, code, banks, b.quads, b.slots, b.views, touched, flat.tables,
        b.shared_static, b.shared_dynamic_at, b.local_size, b.memory, b.param_base, b.param_offsets, b.param_size,
        guards,
    )  # fmt: skip


def generic_local(address):
    """Generic address of a local one."""
    return address + LOCAL_WINDOW
