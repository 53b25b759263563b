"""Registers of a thread at launch, whatever the kernel."""

from __future__ import annotations

from kgen.arch import Arch

WARP = 32
PARTITIONS = 4  # of an SM: each has a quarter of the registers, and runs a quarter of the warps
STEP = 8  # in which a thread is given registers


def registers_at_launch(arch: Arch, threads: int, residents: int) -> int:
    """The most registers per thread with which `residents` CTAs of `threads` fit an SM together.

    A warp's registers are all in one partition, so that nine warps leave a thread as many as twelve would.
    """
    fullest = -(-threads // WARP * residents // PARTITIONS)  # warps of the partition that has most
    each = arch.registers_per_sm // (PARTITIONS * WARP * fullest)
    return min(arch.max_registers_per_thread, each // STEP * STEP)
