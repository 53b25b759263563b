"""Which function binds which opcode, and the reading of modifiers."""

from __future__ import annotations

from kgen.emulator.operands import Instruction
from kgen.errors import EmulatorError

__all__ = ["Mods", "find", "op"]

_HANDLERS: dict[str, object] = {}


def op(*names: str, guards_itself: bool = False):
    """Registers the binder of opcodes. A name may include leading modifiers ("cp.async.bulk")."""

    def register(fn):
        fn.guards_itself = guards_itself
        for name in names:
            _HANDLERS[name] = fn
        return fn

    return register


def find(inst: Instruction):
    """(handler, registered name) of the longest registered name that starts the instruction."""
    words = (inst.op, *inst.mods)
    for n in range(len(words), 0, -1):
        name = ".".join(words[:n])
        if name in _HANDLERS:
            return _HANDLERS[name], name
    family = sorted(k for k in _HANDLERS if k.split(".")[0] == inst.op)
    known = "known of this family: " + ", ".join(family) if family else f"known: {', '.join(sorted(_HANDLERS))}"
    raise EmulatorError(f"unknown instruction {inst.name}; {known}")


class Mods:
    """The modifiers of an instruction, taken in any order; `done` refuses what nobody took."""

    def __init__(self, inst: Instruction, family: str):
        self.inst, self.family = inst, family
        self.left = list((inst.op, *inst.mods)[len(family.split(".")) :])
        self.asked: set[str] = set()

    def flag(self, *names: str) -> bool:
        """True if any of the names is there; all of them are taken."""
        self.asked.update(names)
        found = [w for w in self.left if w in names]
        for w in found:
            self.left.remove(w)
        return bool(found)

    def choose(self, *names: str) -> str | None:
        """The first modifier that is one of `names`."""
        self.asked.update(names)
        for w in self.left:
            if w in names:
                self.left.remove(w)
                return w
        return None

    def need(self, *names: str) -> str:
        """As `choose`, but one must be there."""
        found = self.choose(*names)
        if found is None:
            raise EmulatorError(f"{self.inst.name} needs one of .{', .'.join(names)}")
        return found

    def prefix(self, *starts: str) -> list[str]:
        """Takes every modifier with one of these starts."""
        self.asked.update(s + "*" for s in starts)
        found = [w for w in self.left if w.startswith(starts)]
        for w in found:
            self.left.remove(w)
        return found

    def last(self) -> str:
        """The last modifier, usually the type."""
        if not self.left:
            raise EmulatorError(f"{self.inst.name} has no type")
        return self.left.pop()

    def done(self) -> None:
        """EmulatorError if a modifier was not understood."""
        if self.left:
            known = ", ".join(sorted("." + a for a in self.asked))
            raise EmulatorError(
                f"unknown modifier .{', .'.join(self.left)} of {self.inst.name}; known of {self.family}: {known}"
            )
