"""A fact that does not hold, and what all architectures look up and check alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kgen.plan.common import GemmPlan

REGISTER_FILE = 65_536  # of an SM (CUDA C++ Programming Guide, compute capabilities 9.0 and 10.0)


@dataclass(frozen=True)
class Broken:
    """A fact that does not hold: which, with the numbers, and what to change."""

    fact: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.what}" + (f" ({self.hint})" if self.hint else "")


def constant(plan: GemmPlan, name: str, default: int = 0) -> int:
    return next((c.value for group in plan.constants for c in group if c.name == name), default)


def stage_tile(plan: GemmPlan, region) -> int:
    """Bytes of one stage of a region (of one store box for d)."""
    if region.name == "d":
        return region.bytes // (4 * constant(plan, "NUM_CONSUMERS", 1) * max(1, constant(plan, "STAGING", 1)))
    return region.bytes // (plan.stages if plan.pipelines else 1)


def register_split(plan: GemmPlan) -> Iterator[Broken]:
    """What setmaxnreg and the register file allow."""
    each = plan.launch.launch_registers  # 255 can be named; they are allocated in steps of 8
    launched = (each + 7) // 8 * 8 * plan.launch.threads
    resident = launched * plan.launch.ctas_per_sm
    if (each % 8 and each != 255) or not 8 <= each <= 255:
        yield Broken("registers", f"{each} per thread at launch; a multiple of 8, or 255")
    if resident > REGISTER_FILE:
        yield Broken("registers", f"{plan.launch.ctas_per_sm} CTAs hold {resident:,}; an SM has {REGISTER_FILE:,}",
                     "fewer threads or CTAs per SM")  # fmt: skip
    split = [r for r in plan.roles if r.registers]
    for role in split:
        if role.registers % 8 or not 24 <= role.registers <= 256:
            yield Broken("registers", f"setmaxnreg {role.registers} for {role.name}; a multiple of 8 from 24 to 256")
    for names, first, warps in _neighbours(split):
        if warps % 4 or first % 4:
            yield Broken("registers", f"{names} is warps {first} to {first + warps - 1}; "
                         "setmaxnreg acts on whole warpgroups", "four producer warps")  # fmt: skip
    total = sum(r.threads * r.registers for r in split)
    if split and total > launched:
        yield Broken("registers", f"the split takes {total:,}; the CTA launches with {launched:,}, so that setmaxnreg "
                     "waits for ever", "lower a share")  # fmt: skip


def _neighbours(split) -> Iterator[tuple[str, int, int]]:
    """Names, first warp and warps of roles that lie side by side and ask for the same: they may share a warpgroup."""
    i = 0
    while i < len(split):
        first, names = split[i], [split[i].name]
        warps = first.warps
        while i + 1 < len(split) and (split[i + 1].first_warp, split[i + 1].registers) == (
            first.first_warp + warps,
            first.registers,
        ):
            i += 1
            names.append(split[i].name)
            warps += split[i].warps
        yield ", ".join(names), first.first_warp, warps
        i += 1
