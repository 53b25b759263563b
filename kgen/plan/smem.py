"""Shared memory, whatever the kernel: a map in address order, what to ask for at launch, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kgen.arch import Arch
from kgen.errors import Refusal
from kgen.plan.resources import SmemMap, SmemRegion

REQUEST_STEP = 1024


def in_order(wanted: Iterable[tuple[str, str, tuple[str, ...], int, str]], alignment: int) -> SmemMap:
    """The map of (name, ctype, extents, bytes, why), one directly after the other."""
    regions, offset = [], 0
    for name, ctype, extents, size, why in wanted:
        regions.append(SmemRegion(name, ctype, extents, offset, size, why))
        offset += size
    return SmemMap(tuple(regions), alignment)


def smem_request(arch: Arch, residents: int, smem: SmemMap) -> int:
    """Dynamic shared memory asked for at launch: the storage, or as much as keeps more than `residents` CTAs off the
    SM."""
    one_more = arch.smem_per_sm // (residents + 1) - arch.smem_reserved_per_cta
    exclude = (one_more // REQUEST_STEP + 1) * REQUEST_STEP
    return max(smem.bytes, exclude)


def smem_limits(
    arch: Arch, residents: int, stages: int, stage_bytes: int, map_with: Callable[[int], SmemMap]
) -> Iterator[Refusal]:
    """More shared memory than a CTA may have, or than `residents` CTAs may have together; `map_with` gives the map of
    a ring of so many stages."""
    used = map_with(stages).bytes
    room = min(arch.smem_per_cta, arch.smem_per_sm // residents - arch.smem_reserved_per_cta)
    if used <= room:
        return
    fits = max((s for s in range(1, stages) if map_with(s).bytes <= room), default=0)
    who = f"{arch.name} has {room:,} B"
    if residents > 1:
        who += f" for each of {residents} CTAs per SM"
    yield Refusal(
        "pipeline.stages",
        f"{stages} stages x {stage_bytes:,} B + {used - stages * stage_bytes:,} B of staging and barriers = "
        f"{used:,} B of shared memory; {who}",
        f"at most {fits} fit" if fits else "no stage fits: take a smaller tile or fewer CTAs per SM",
    )
