"""A kernel and the device functions it calls, as one flat list of instructions. PTX ISA §7.1.

Every call gets its own copy of the callee with its own registers, labels and variables, so that the warp needs
no call stack. Recursion cannot be expressed this way and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kgen.emulator.operands import (
    Address,
    Function,
    Instruction,
    Label,
    Module,
    Pair,
    Reg,
    Sink,
    Symbol,
    Variable,
    Vector,
)
from kgen.errors import EmulatorError

__all__ = ["Flat", "flatten"]

_DEPTH = 64


@dataclass
class Flat:
    """Instructions, the variables they name (unique), and branch tables."""

    body: list[Instruction] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[str, tuple[Label, ...]] = field(default_factory=dict)


def flatten(module: Module, entry: Function) -> Flat:
    """The kernel with all calls expanded. EmulatorError for recursion, indirect calls and missing bodies."""
    flat = Flat()
    _expand(module, entry, "", {}, flat, [])
    return flat


def _expand(module: Module, f: Function, tag: str, bound: dict[str, str], flat: Flat, stack: list[str]) -> None:
    if f.name in stack or len(stack) > _DEPTH:
        raise EmulatorError(f"recursive call of {f.name} is not modelled")
    stack = [*stack, f.name]
    names: dict[str, str] = {}
    for name, variable in f.variables.items():
        if name in bound:
            names[name] = bound[name]
        elif variable.space in ("shared", "global", "const"):
            names[name] = name  # one copy per CTA or module, however often the function is expanded
            flat.variables[name] = variable
        else:
            names[name] = name + tag
            space = "param" if f.entry and variable in f.params else "local"
            flat.variables[name + tag] = replace(variable, name=name + tag, space=space)
    starts: list[int] = []  # where each instruction of f lies in the flat body
    fixups: list[tuple[int, Instruction]] = []

    def move(x):
        if isinstance(x, Reg):
            return replace(x, name=x.name + tag) if tag else x
        if isinstance(x, Symbol):
            return replace(x, name=names.get(x.name, x.name))
        if isinstance(x, Vector):
            return Vector(tuple(move(i) for i in x.items))
        if isinstance(x, Address):
            return Address(move(x.base), x.offset, move(x.coords))
        if isinstance(x, Pair):
            return Pair(move(x.first), move(x.second))
        return x

    for inst in f.body:
        starts.append(len(flat.body))
        moved = replace(inst, operands=tuple(move(x) for x in inst.operands), guard=inst.guard and move(inst.guard))
        if inst.op == "call":
            _call(module, moved, flat, stack)
            continue
        flat.body.append(moved)
        fixups.append((len(flat.body) - 1, moved))
    starts.append(len(flat.body))

    def place(label: Label) -> Label:
        return Label(label.name, starts[label.index])

    for at, inst in fixups:
        if any(isinstance(x, Label) for x in inst.operands):
            inst.operands = tuple(place(x) if isinstance(x, Label) else x for x in inst.operands)
        if inst.op in ("ret", "exit") and not f.entry and inst.op == "ret":
            flat.body[at] = replace(inst, op="bra", mods=("uni",), operands=(Label("return", starts[-1]),))
        elif inst.op == "brx":
            name = inst.operands[1].name
            flat.tables[name + tag] = tuple(place(x) for x in f.tables[name])
            inst.operands = (inst.operands[0], Symbol(name + tag))


def _call(module: Module, inst: Instruction, flat: Flat, stack: list[str]) -> None:
    groups = [x for x in inst.operands if isinstance(x, Vector)]
    targets = [x for x in inst.operands if not isinstance(x, Vector)]
    if not targets or not isinstance(targets[0], Symbol):
        raise EmulatorError(f"{inst.where()}: indirect calls are not modelled: {inst.text}")
    callee = module.functions.get(targets[0].name)
    if callee is None:
        raise EmulatorError(f"{inst.where()}: call of an unknown function: {inst.text}")
    first = isinstance(inst.operands[0], Vector)
    results = groups[0].items if first else ()
    arguments = groups[1 if first else 0].items if len(groups) > (1 if first else 0) else ()
    if callee.body is None:
        # Only intrinsics have no body; the machine decides what they do.
        flat.body.append(replace(inst, operands=(Symbol(callee.name), Vector(results), Vector(arguments))))
        return
    if len(results) != len(callee.results) or len(arguments) != len(callee.params):
        raise EmulatorError(f"{inst.where()}: {callee.name} takes other parameters: {inst.text}")
    tag = f"~{len(flat.body)}"
    bound = {}
    for formal, actual in zip((*callee.results, *callee.params), (*results, *arguments), strict=True):
        if not isinstance(actual, Symbol):
            raise EmulatorError(f"{inst.where()}: only .param variables can be passed to a call: {inst.text}")
        bound[formal.name] = actual.name
    if inst.guard is not None:
        # Skip the expansion with a branch on the opposite guard.
        guard = replace(inst.guard, negated=not inst.guard.negated)
        skip = replace(inst, op="bra", mods=(), operands=(), guard=guard)
        flat.body.append(skip)
        _expand(module, callee, tag, bound, flat, stack)
        skip.operands = (Label("skipped call", len(flat.body)),)
    else:
        _expand(module, callee, tag, bound, flat, stack)


def is_wanted(x) -> bool:
    """False for `_`."""
    return not isinstance(x, Sink)
