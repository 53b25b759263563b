"""The names of all checks, for options that name one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kgen.errors import EmulatorError

__all__ = ["NAMES", "verify"]

NAMES = frozenset({
    "async-read-unfenced",
    "async-write-unfenced",
    "bulk-alignment",
    "bulk-commit",
    "bulk-destination-cta",
    "bulk-source-at-exit",
    "clc-after-failure",
    "clc-alignment",
    "clc-ctaid-of-failure",
    "clc-exited-cta",
    "clc-response",
    "clc-unfinished",
    "cluster-rank",
    "cp-async-alignment",
    "exit-unobserved",
    "exit-while-in-flight",
    "idesc-unusual",
    "mbarrier-arrival-overflow",
    "mbarrier-can-alias",
    "mbarrier-count",
    "mbarrier-exited-cta",
    "mbarrier-init-live",
    "mbarrier-init-unfenced",
    "mbarrier-init-unobserved",
    "mbarrier-inval-in-use",
    "mbarrier-misaligned",
    "mbarrier-nocomplete",
    "mbarrier-overwritten",
    "mbarrier-parity-alias",
    "mbarrier-phase-unobserved",
    "mbarrier-tx-overflow",
    "mbarrier-uninitialised",
    "multicast-cta",
    "smem-out-of-window",
    "smem-overwritten-in-flight",
    "smem-overwritten-unobserved",
    "smem-race",
    "smem-read-in-flight",
    "smem-read-unobserved",
    "smem-write-in-flight",
    "swizzle-phase",
    "tcgen05-cta-group",
    "tcgen05-peer-exited",
    "tcgen05-peer-unlaunched",
    "tma-alignment",
    "tma-barrier-cta",
    "tma-read",
    "tmem-alloc",
    "tmem-dealloc",
    "tmem-dealloc-in-use",
    "tmem-lane-window",
    "tmem-leak",
    "tmem-missing-fence-after",
    "tmem-missing-fence-before",
    "tmem-missing-wait-ld",
    "tmem-missing-wait-st",
    "tmem-out-of-allocation",
    "tmem-overwritten-in-flight",
    "tmem-read-before-commit",
    "tmem-replicas",
    "uninitialised-register",
    "uninitialised-shared",
    "uninitialised-tmem",
    "warp-mask-exited",
    "warp-sync-missing",
    "wgmma-group",
    "wgmma-missing-fence",
    "wgmma-registers-in-flight",
    "wgmma-unwaited-at-exit",
    "wgmma-warps-disagree",
})  # fmt: skip


def verify(names: Iterable[str]) -> None:
    """EmulatorError that tells the nearest name if one does not exist."""
    for name in sorted(set(names) - NAMES):
        near = difflib.get_close_matches(name, sorted(NAMES), 1, 0.0)[0]
        raise EmulatorError(f"there is no check named {name!r}; the nearest name is {near!r}")
