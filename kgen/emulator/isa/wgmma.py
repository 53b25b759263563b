"""wgmma: groups of four warps. PTX ISA §9.7.15.

A warpgroup's instructions form one queue. An instruction enters it when the first warp issues it, and may run
once all four have; it then reads shared memory and registers, which is as late as the document allows.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from kgen.emulator import descriptors, fragments
from kgen.emulator.hazards import words_of
from kgen.emulator.isa.control import gather_all
from kgen.emulator.isa.matrix import matmul
from kgen.emulator.operands import Imm, Reg, Vector
from kgen.emulator.order import Facts
from kgen.emulator.registry import op
from kgen.emulator.warp import RETRY
from kgen.errors import EmulatorError

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}


class Warpgroup:
    """The queue of four warps. `calls` are the instructions issued, by sequence number; `fact` counts those that a
    warp has waited for."""

    def __init__(self, cta, number: int):
        self.cta, self.number = cta, number
        self.calls: list[dict] = []
        self.fact = cta.cluster.order.facts(1)

    @property
    def warps(self):
        return self.cta.warps[4 * self.number : 4 * self.number + 4]

    def issue(self, w, seq: int, values: tuple, reads, task, place: str) -> None:
        """One warp issues instruction `seq`; the fourth puts it on the agenda. `reads`: shared words it reads."""
        if seq == len(self.calls):
            self.calls.append({"values": values, "warps": 0, "place": place, "action": None})
        call = self.calls[seq]
        if call["values"] != values:
            raise EmulatorError(f"the warps of a warpgroup issue wgmma with different operands (first at {call['place']})")
        call["warps"] += 1
        if call["warps"] < 4:
            return
        facts = _common_knowledge(self.warps)
        label = f"wgmma {seq} of warpgroup {self.number} in {self.cta.name}"
        hazards = self.cta.hazards
        flights = [hazards.begin_read(words, facts, label, "", self.fact, seq) for words in reads]

        def run():
            task()
            for flight in flights:
                hazards.end(flight)

        before = [self.calls[seq - 1]["action"]] if seq else []
        unit = f"tensor core of {self.cta.name} warpgroup {self.number}"
        call["action"] = self.cta.machine.agenda.add("wgmma", unit, label, run, after=before)

    def finish(self, upto: int) -> None:
        """Runs the instructions before number `upto`, all of which four warps have issued."""
        self.cta.machine.agenda.force(c["action"] for c in self.calls[:upto] if not c["action"].done)


def _common_knowledge(warps) -> Facts:
    """What all of the warps know: each of them must have synchronised with the operands' writers."""
    known = [x.actor.known.values for x in warps]
    size = min(x.size for x in known)
    return Facts(np.minimum.reduce([x[:size] for x in known]))


def warpgroup(w) -> Warpgroup:
    """The warpgroup of a warp."""
    number = w.index // 4
    if len(w.cta.warps) < 4 * number + 4:
        raise EmulatorError("wgmma needs a warpgroup: four whole warps, the first a multiple of four")
    found = w.cta.__dict__.setdefault("warpgroups", {})
    if number not in found:
        found[number] = Warpgroup(w.cta, number)
    return found[number]


def _progress(w) -> dict:
    return w.thread_state.setdefault("wgmma", {"issued": 0, "groups": []})


@op("wgmma.fence", "wgmma.commit_group")
def fence_commit(b, inst, mods):
    mods.flag("sync", "aligned")
    commit = inst.mods[0] == "commit_group"

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        warpgroup(w)
        state = _progress(w)
        if commit:
            state["groups"].append(state["issued"])
        else:
            w.accumulators.dirty = ""
        return None

    return fn


class _Wait:
    def __init__(self, group: Warpgroup, upto: int):
        self.group, self.upto = group, upto

    def ready(self) -> bool:
        calls = self.group.calls
        return self.upto == 0 or (len(calls) >= self.upto and calls[self.upto - 1]["action"] is not None)

    def describe(self) -> str:
        missing = 4 - self.group.calls[self.upto - 1]["warps"]
        return f"wgmma {self.upto} of its warpgroup, which {missing} warps of the warpgroup have not issued"


@op("wgmma.wait_group")
def wait(b, inst, mods):
    mods.flag("sync", "aligned")
    left = inst.operands[0].value

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        groups = _progress(w)["groups"]
        if len(groups) <= left:
            return None
        group, upto = warpgroup(w), groups[len(groups) - left - 1]
        pending = _Wait(group, upto)
        if not pending.ready():
            return (RETRY, pending)
        group.finish(upto)
        w.accumulators.finish(upto)
        w.actor.known.learn(group.fact, upto)
        w.machine.progress += 1
        return None

    return fn


@lru_cache(maxsize=512)
def _descriptor(word: int, bits: int, trans: bool):
    desc = descriptors.decode_wgmma(word)
    major = descriptors.MN_MAJOR if trans else descriptors.K_MAJOR
    descriptors.check_operand(desc, bits, major)
    return desc, major


@lru_cache(maxsize=512)
def _words(word: int, rows: int, k: int, bits: int, trans: bool) -> np.ndarray:
    """The 4-byte words of shared memory that an operand occupies."""
    desc, major = _descriptor(word, bits, trans)
    return np.unique(words_of(descriptors.chunk_addresses(desc, rows, k, bits // 8, major), 16))


@op("wgmma.mma_async")
def mma_async(b, inst, mods):
    mods.flag("sync", "aligned")
    saturate = mods.flag("satfinite")
    shape = next((x for x in mods.left if re.fullmatch(r"m64n\d+k\d+", x)), None)
    if shape is None or mods.flag("sp") or mods.flag("popc"):
        raise EmulatorError(f"{inst.name}: sparse and b1 forms are not modelled")
    mods.flag(shape)
    n, k = (int(x) for x in re.findall(r"\d+", shape)[1:])
    b_type, a_type, d_type = mods.last(), mods.last(), mods.last()
    bits = _BITS.get(a_type)
    if bits is None or _BITS.get(b_type) != bits or k * bits != 256:
        raise EmulatorError(f"{inst.name}: no such combination of shape and types")
    d, a, bd, *rest = inst.operands
    packed = d_type == "f16"
    d_map = fragments.wgmma_d(n, packed)
    outs = b.rows(d.items, 4)
    if outs is None or len(outs) != (n // 4 if packed else n // 2):
        raise EmulatorError(f"{inst.name}: the accumulator needs {n // 4 if packed else n // 2} 32-bit registers")
    in_registers = isinstance(a, Vector)
    a_rows = b.rows(a.items, 4, write=False) if in_registers else None
    if in_registers and (a_rows is None or len(a_rows) != 4):
        raise EmulatorError(f"{inst.name}: A in registers needs 4 32-bit registers")
    a_slot = None if in_registers else b.src(a, "u64")
    b_slot = b.src(bd, "u64")
    scale = rest.pop(0) if rest else Imm(1)
    scale_slot = b.src(scale, "pred") if isinstance(scale, Reg) else None
    floats = d_type != "s32"
    flags = [x.value for x in rest]
    negate_a, negate_b = (flags.pop(0) == -1, flags.pop(0) == -1) if floats and len(flags) >= 2 else (False, False)
    trans_a = bool(flags.pop(0)) if bits == 16 and not in_registers and flags else False
    trans_b = bool(flags.pop(0)) if bits == 16 and flags else False
    if flags:
        raise EmulatorError(f"{inst.name}: too many immediates")
    a_map = fragments.wgmma_a(bits) if in_registers else None
    unit = {"negate_a": negate_a, "negate_b": negate_b}

    def operand(memory, word, rows, trans):
        desc, major = _descriptor(word, bits, trans)
        return descriptors.read_operand(memory.bytes, desc, rows, k, bits, major)

    def run(w, group, words, add):
        cta = w.cta
        if in_registers:
            a_codes = np.zeros((64, k), np.uint32)
            regs = np.concatenate([x.banks[4][a_rows].T for x in group.warps])
            a_codes[a_map] = fragments.unpack(regs, bits) if bits < 32 else regs[..., None]
        else:
            a_codes = operand(cta.shared, words[0], 64, trans_a)
        b_codes = operand(cta.shared, words[1], n, trans_b)
        c = None
        if add:
            regs = np.concatenate([x.banks[4][outs].T for x in group.warps])
            c = np.empty((64, n), np.uint32)
            c[d_map] = fragments.unpack(regs, 16) if packed else regs
        r = matmul(w, a_codes, b_codes, c, a_type, b_type, d_type, "wgmma", saturate, **unit)
        r = fragments.pack(r[d_map], 16) if packed else r[d_map]
        for i, x in enumerate(group.warps):
            x.banks[4][outs] = r[32 * i : 32 * i + 32].T

    def fn(w, m):
        held = gather_all(w, m)
        if held:
            return held
        group, state = warpgroup(w), _progress(w)
        words = (int(w.v[a_slot][0]) if a_slot is not None else 0, int(w.v[b_slot][0]))
        add = bool(w.v[scale_slot][0]) ^ scale.negated if scale_slot is not None else bool(scale.value)
        reads = [_words(words[1], n, k, bits, trans_b)]
        if a_slot is not None:
            reads.insert(0, _words(words[0], 64, k, bits, trans_a))
        seq = state["issued"]
        state["issued"] += 1
        w.accumulators.issue(w, seq, d_names, a_names, w.place())
        group.issue(w, seq, (*words, add, b_index), reads, lambda: run(w, group, words, add), w.place())
        return None

    b_index = b.index
    d_names = frozenset(x.name for x in d.items)
    a_names = frozenset(x.name for x in a.items) if in_registers else frozenset()
    return fn
