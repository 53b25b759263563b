"""A warp: typed register rows, groups of lanes with one program counter each, and its run loop.

The lanes of a warp form groups that stand at the same instruction. The group furthest back runs, so that
lanes which parted meet again at the join; `.sync` instructions hold a group until every lane they name has
come. A group that keeps jumping backwards gives way now and then, or lanes it waits for would never run.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.monitor import CheckFailure
from kgen.errors import EmulatorError

__all__ = ["EXIT", "RETRY", "SPLIT", "SYNC", "WAIT", "YIELD", "Group", "Warp", "bitmask", "lanes_of"]

FULL = 0xFFFFFFFF
# What an instruction may return besides None (go on) and an index (all its lanes jump there).
SPLIT = "split"  # (SPLIT, target, lanes): those lanes jump, the rest go on
PART = "part"  # (PART, target, lanes, rest): lanes jump, the rest run the instruction again
EXIT = "exit"  # (EXIT, lanes): those lanes end
SYNC = "sync"  # (SYNC, lanes): run it again when all those lanes are here
RETRY = "retry"  # (RETRY, wait): run it again when wait.ready()
WAIT = "wait"  # (WAIT, wait): go on when wait.ready()
YIELD = "yield"  # (YIELD,): go on, after others had a turn
_PATIENCE = 512  # backward jumps of one group before another may run

_LANES = np.arange(32, dtype=np.uint32)
_MASKS: dict[int, np.ndarray | bool] = {FULL: True}


def bitmask(mask) -> int:
    """The lanes of a mask (True, or bool[32]) as an integer."""
    return FULL if mask is True else int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def lanes_of(bits: int):
    """The mask of a lane integer: True for all 32, else bool[32] (shared; not to be changed)."""
    mask = _MASKS.get(bits)
    if mask is None:
        mask = (np.uint32(bits) >> _LANES & 1).astype(bool)
        mask.flags.writeable = False
        if len(_MASKS) < 4096:
            _MASKS[bits] = mask
    return mask


class Group:
    """Lanes (an integer) at instruction `pc`; `wait` is what holds them: None, ("sync", lanes) or a wait."""

    __slots__ = ("again", "lanes", "pc", "spins", "wait")

    def __init__(self, pc: int, lanes: int):
        self.pc, self.lanes, self.wait, self.again, self.spins = pc, lanes, None, False, 0


class Warp:
    """32 lanes. `v` holds the rows (registers, constants, special registers) that the bound code indexes."""

    def __init__(self, cta, index: int, program, threads: int):
        self.cta, self.index, self.program = cta, index, program
        self.machine = cta.machine
        if self.machine.trace is None:
            self.code, self.whole = program.code, program.whole_warp_code
        else:
            self.code = self.whole = self.machine.trace.counted(program.code)
        self.live = (1 << min(32, threads)) - 1
        self.groups = [Group(0, self.live)]
        self.current: Group | None = None
        self.count = 0  # instructions run
        self.watch, self.seen, self.spinning = False, set(), False
        self.thread_state: dict = {}  # of async units, by what they like
        self.banks = {k: rows.copy() for k, rows in program.initial.items()}
        self.b = [_seen_as(self.banks[bank], dtype) for bank, dtype in program.views]
        self.quads = np.zeros((program.quads, 32, 2), np.uint64)
        self.local = np.zeros((32, program.local_size), np.uint8)
        self.local_views = {n: self.local.reshape(-1).view(t) for n, t in _LOCAL.items()}
        self.expired: dict[int, bool] = {}  # try_waits whose time limit has passed
        self.at = 0
        self.alloc_call: dict | None = None  # a tcgen05.alloc that is under way
        self.loading: set[str] = set()  # registers that a tcgen05.ld will write at the next wait::ld
        self.warpgroup = None  # its wgmma queue, once there is one
        self.complete: set[str] = set()  # those that all 32 lanes have written
        self.written: dict[str, np.ndarray] = {}  # lanes that wrote a register that needs watching
        self.actor = cta.cluster.order.actor(self.name)
        self.actor.rank = cta.rank
        self.v = program.rows(self)

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.cta.name} warp {self.index}"

    @property
    def done(self) -> bool:
        return not self.groups

    # -- groups ------------------------------------------------------------------------------------------
    def _settle(self, group: Group) -> None:
        """Puts a group back, joined with one that stands at the same place in the same state."""
        for other in self.groups:
            if other is group or other.pc != group.pc or (other.wait is None) != (group.wait is None):
                continue
            if other.wait is None or (other.wait[0] == SYNC == group.wait[0]):
                other.lanes |= group.lanes
                self.groups.remove(group)
                return

    def _runnable(self, group: Group) -> bool:
        wait = group.wait
        if wait is None:
            return True
        if wait[0] == SYNC:
            # Lanes that came after this group stands in others at the same pc.
            here = group.lanes
            for other in self.groups:
                if other is not group and other.pc == group.pc and (other.wait is None or other.wait[0] == SYNC):
                    here |= other.lanes
            if wait[1] & self.live & ~here:
                return False
            for other in list(self.groups):
                if other is not group and other.pc == group.pc and (other.wait is None or other.wait[0] == SYNC):
                    group.lanes |= other.lanes
                    self.groups.remove(other)
            group.wait = None
            return True
        if wait[1].ready():
            if wait[0] == WAIT:
                group.pc += 1
            group.wait = None
            self._settle(group)
            return True
        return False

    def pick(self) -> Group | None:
        """The group to run: the one furthest back that can, unless it has spun for long."""
        best = None
        if len(self.groups) == 1:
            group = self.groups[0]
            return group if group.wait is None or self._runnable(group) else None
        for group in list(self.groups):
            if group in self.groups and self._runnable(group) and group in self.groups:
                key = (group.spins > _PATIENCE, group.pc)
                if best is None or key < best[0]:
                    best = (key, group)
        if best is None:
            return None
        if best[1].spins > _PATIENCE:
            for group in self.groups:
                group.spins = 0
        return best[1]

    # -- running -----------------------------------------------------------------------------------------
    def run(self, random) -> int:
        """Runs some instructions, 48 to 400 by chance; how many were run. 0: it cannot move (or has ended)."""
        group = self.pick()
        if group is None:
            return 0
        left = budget = random.randint(48, 400)
        while group is not None:
            left, stop = self._run_group(group, left)
            group = None if stop or left <= 0 else self.pick()
        self.current = None
        self.count += budget - left
        return budget - left

    def _run_group(self, group: Group, left: int) -> tuple[int, bool]:
        self.current = group
        pc, mask = group.pc, lanes_of(group.lanes)
        code = self.whole if mask is True else self.code
        others = len(self.groups) > 1
        limit = min((g.pc for g in self.groups if g is not group and g.pc > pc), default=-1) if others else -1
        try:
            while left > 0:
                self.at = pc
                result = code[pc](self, mask)
                left -= 1
                if result is None:
                    pc += 1
                    if pc == limit:
                        group.pc = pc
                        self._settle(group)
                        return left, False
                    continue
                if type(result) is int:
                    if result < 0:  # so many instructions at once (blocks.py)
                        pc -= result
                        left += result + 1
                        continue
                    if result <= pc:
                        group.spins += 1
                        if self.watch and self._repeats(result):
                            group.pc = result
                            return left, True
                        if others and group.spins > _PATIENCE:
                            group.pc = result
                            self._settle(group)
                            return left, False
                    pc = result
                    if others:
                        group.pc = pc
                        self._settle(group)
                        return left, False
                    continue
                group.pc = pc
                return left, self._control(group, result)
        except EmulatorError as error:
            raise self.located(error, self.at) from None
        except (IndexError, ValueError, TypeError, KeyError, ArithmeticError) as error:
            raise self.located(EmulatorError(f"emulator fault: {error!r}"), self.at) from error
        group.pc = pc
        return left, False

    def _control(self, group: Group, result) -> bool:
        """Applies a control result; True if the warp's turn ends."""
        kind = result[0]
        if kind == SPLIT:
            taken = Group(result[1], result[2])
            if taken.pc <= group.pc:
                taken.spins = group.spins + 1
            group.lanes &= ~taken.lanes
            group.pc += 1
            self.groups.append(taken)
            self._settle(taken)
            self._settle(group)
        elif kind == EXIT:
            self.live &= ~result[1]
            group.lanes &= ~result[1]
            self.machine.progress += 1
            if group.lanes:
                group.pc += 1
                self._settle(group)
            else:
                self.groups.remove(group)
            if not self.live:
                self.cta.warp_ended(self)
                return True
        elif kind == PART:
            group.lanes = result[3]
            taken = Group(result[1], result[2])
            self.groups.append(taken)
            self._settle(taken)
        elif kind == YIELD:
            group.pc += 1
            return True
        else:
            if kind == SYNC and not result[1] & self.live & ~group.lanes:
                # All lanes stand here, yet a guard kept some of them from taking part.
                text = f"needs lanes {result[1] & self.live:#010x} of the warp, but the guard is false in some of them"
                raise self.located(EmulatorError(text), group.pc)
            group.wait = result
            if self.machine.trace is not None:
                self.machine.trace.waits(self, group, result)
        return False

    def _repeats(self, target: int) -> bool:
        """True if the warp stands exactly as at an earlier backward jump: it will never leave its loop."""
        state = hash((target, *(b.tobytes() for b in self.banks.values()), self.local.tobytes()))
        self.spinning = state in self.seen
        self.seen.add(state)
        return self.spinning

    def located(self, error: EmulatorError, pc: int) -> EmulatorError:
        """The error with the instruction and the warp it happened in."""
        if isinstance(error, CheckFailure) or getattr(error, "located", False):
            return error
        text = f"{error}\n  at {self.place(pc)}"
        try:
            fresh = type(error)(text)
        except TypeError:
            fresh = EmulatorError(text)
        fresh.located = True
        return fresh

    def place(self, pc: int | None = None) -> str:
        """The instruction at `pc` (the current one) and this warp, for messages."""
        inst = self.program.instructions[self.at if pc is None else pc]
        return f"{inst.where()}, {self.name}: {inst.text[:160]}"


def _seen_as(bank: np.ndarray, dtype) -> np.ndarray:
    """[rows, 32] of a type: the low part of each value where the type is narrower."""
    view = bank.view(dtype)
    return view[:, :: view.shape[1] // 32]


_LOCAL = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
