"""Reads what nvcc, ptxas and the host compiler print: resource use per kernel, and what must not be there.

The worst messages are only `info` to ptxas, so `-Werror` never sees them: a kernel whose wgmma are serialised
or whose `setmaxnreg` is ignored compiles with exit code 0 and runs at a fraction of its speed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelUsage:
    """`ptxas -v` of one function. Sizes in bytes; `smem` is static shared memory only.

    A function that was called rather than inlined has `entry=False` and no registers of its own.
    """

    name: str  # as the linker sees it
    entry: bool = True
    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack_frame: int = 0
    smem: int = 0
    barriers: int = 0

    @property
    def short_name(self) -> str:
        return short_name(self.name)


@dataclass(frozen=True)
class Note:
    """A line that is not statistics. `code` is ptxas's own (C7510), if any; `why` says it in plain words."""

    line: str
    severity: str  # info, warning or error
    code: str
    why: str

    def __str__(self) -> str:
        return f"{self.line}\n    {self.why}" if self.why else self.line


# (what the line contains, what it means). The first that fits explains the line.
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"Registers are spilled",
        "the kernel needs more registers than a thread may have, so values go through memory: "
        "use a smaller tile, a shorter epilogue, fewer accumulators per thread, or more threads",
    ),
    (
        r"Local memory used",
        "an array lives in memory instead of registers: index it with constants (unroll the loop) and inline "
        "every function that takes it",
    ),
    (
        r"wgmma\.mma_async instructions are serialized",
        "every wgmma waits for the one before it, so the tensor cores idle: between fence and wait "
        "nothing but wgmma may touch the accumulators, no function may be called, and registers must suffice",
    ),
    (
        r"'setmaxnreg' ignored; unable to determine register count at entry",
        "the warpgroups keep equal registers: give the kernel __launch_bounds__",
    ),
    (
        r"'setmaxnreg' ignored to maintain compatibility",
        "the warpgroups keep equal registers: compile without -rdc and call no external function",
    ),
    (r"'setmaxnreg' ignored to allow debugging", "the warpgroups keep equal registers: compile without -G"),
    (
        r"'setmaxnreg' ignored",
        "the warpgroups keep equal registers, so the consumers lack those they count on",
    ),
    (
        r"warpgroup\.arrive is injected",
        "a wgmma reads registers with no wgmma.fence after their last write; the compiler had to add one",
    ),
    (
        r"warpgroup\.wait is injected",
        "a wgmma's result is used before its wgmma.wait_group; the compiler had to add one",
    ),
    (
        r"Insufficient registers|larger than the largest temporal register count",
        "the register split does not fit the kernel: change warps.registers, or the tile",
    ),
    (
        r"Unsupported \.version",
        "the front end (cicc) is newer than ptxas: reinstall the toolchain from one CUDA release",
    ),
    (
        r"unsupported GNU version",
        "this host compiler is too new for this nvcc: set NVCC_CCBIN to an older one",
    ),
    (
        r"Failed to preprocess host compiler properties",
        "nvcc needs a host C++ compiler: apt-get install g++, or set NVCC_CCBIN",
    ),
)

_SEVERITY = re.compile(
    r"\b(?P<s>warning|error|fatal)(?: error)?\s*(?:#[\w-]+)?\s*:|undefined reference|cannot find -l"
)
_INFO = re.compile(r"^ptxas\b.*\binfo\s*:\s*(?P<text>.*)$")
_CODE = re.compile(r"\((C\d{4})\)")
_STATISTICS = re.compile(
    r"^(\d+ bytes gmem|Compiling entry function |Function properties for |Used \d+ registers|Compile time = )"
)
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_FRAME = re.compile(
    r"(?P<frame>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d+) registers(?:, used (?P<barriers>\d+) barriers)?(?P<rest>.*)")
_SMEM = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


def parse(log: str) -> tuple[tuple[KernelUsage, ...], tuple[Note, ...]]:
    """Resource use of every function, and every note, warning and error, in the log of one compilation."""
    functions: dict[str, dict] = {}
    notes: list[Note] = []
    entry = current = ""
    for line in log.splitlines():
        if m := _ENTRY.search(line):
            entry = m["name"]
        elif m := _PROPERTIES.search(line):
            current = m["name"]
            functions[current] = {"name": current, "entry": current == entry}
        elif (m := _FRAME.search(line)) and current:
            functions[current] |= {
                "stack_frame": int(m["frame"]),
                "spill_stores": int(m["stores"]),
                "spill_loads": int(m["loads"]),
            }
        elif (m := _USED.search(line)) and entry in functions:
            smem = _SMEM.search(m["rest"])
            functions[entry] |= {
                "registers": int(m["registers"]),
                "barriers": int(m["barriers"] or 0),
                "smem": int(smem[1]) if smem else 0,
            }
        elif note := _note(line.strip()):
            notes.append(note)
    return tuple(KernelUsage(**f) for f in functions.values()), tuple(notes)


def spills(kernel: KernelUsage) -> Note | None:
    """The note for a kernel that spills; ptxas prints one itself only if asked to (-warn-spills)."""
    if not kernel.spill_stores and not kernel.spill_loads:
        return None
    line = f"{kernel.name}: {kernel.spill_stores} bytes spill stores, {kernel.spill_loads} bytes spill loads"
    return Note(line, "warning", "", explain("Registers are spilled"))


def explain(line: str) -> str:
    """Plain words for a compiler's line, or "" where the line speaks for itself."""
    return next((why for pattern, why in REASONS if re.search(pattern, line)), "")


def short_name(mangled: str) -> str:
    """The function's own identifier in an Itanium-mangled name: enough to know the kernel by, no c++filt.

    A nested name is a sequence of identifiers, the function's last; after a plain one come its parameters.
    """
    nested = mangled.startswith("_ZN")
    rest = re.sub(r"^_ZN?", "", mangled)
    last = mangled
    while mangled.startswith("_Z") and (m := re.match(r"(\d+)", rest)):
        size, rest = int(m[1]), rest[m.end() :]
        last, rest = rest[:size], rest[size:]
        if not nested:
            break
    return last


def _note(line: str) -> Note | None:
    code = _CODE.search(line)
    if m := _SEVERITY.search(line):
        severity = "warning" if m["s"] == "warning" else "error"
    elif (m := _INFO.search(line)) and not _STATISTICS.match(m["text"]):
        severity = "info"
    else:
        return None
    return Note(line, severity, code[1] if code else "", explain(line))
