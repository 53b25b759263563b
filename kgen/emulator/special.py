"""Special registers. PTX ISA §10."""

from __future__ import annotations

import re

import numpy as np

from kgen.emulator.memory import SHARED_BASE
from kgen.errors import EmulatorError

__all__ = ["CLOCKS", "special"]

CLOCKS = ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo", "%clock_hi", "%globaltimer_hi")
_LANES = np.arange(32)


def _xyz(name: str, axis: str):
    i = "xyz".index(axis)

    def thread(w):
        x, y, _ = w.cta.block
        linear = w.index * 32 + _LANES
        return (linear % x, linear // x % y, linear // (x * y))[i]

    return {
        "tid": thread,
        "ntid": lambda w: w.cta.block[i],
        "ctaid": lambda w: w.cta.index[i],
        "nctaid": lambda w: w.machine.grid[i],
        "cluster_ctaid": lambda w: w.cta.index[i] % w.machine.cluster[i],
        "cluster_nctaid": lambda w: w.machine.cluster[i],
        "clusterid": lambda w: w.cta.index[i] // w.machine.cluster[i],
        "nclusterid": lambda w: w.machine.grid[i] // w.machine.cluster[i],
    }[name]


_SIMPLE = {
    "laneid": lambda w: _LANES,
    "warpid": lambda w: w.index,
    "nwarpid": lambda w: w.cta.round_threads // 32,
    "smid": lambda w: w.cta.sm,
    "nsmid": lambda w: w.machine.sm_count,
    "gridid": lambda w: 1,
    "cluster_ctarank": lambda w: w.cta.rank,
    "cluster_nctarank": lambda w: int(np.prod(w.machine.cluster)),
    "is_explicit_cluster": lambda w: w.machine.explicit_cluster,
    "lanemask_eq": lambda w: 1 << _LANES,
    "lanemask_lt": lambda w: (1 << _LANES) - 1,
    "lanemask_le": lambda w: (2 << _LANES) - 1,
    "lanemask_gt": lambda w: 0xFFFFFFFF & ~((2 << _LANES) - 1),
    "lanemask_ge": lambda w: 0xFFFFFFFF & ~((1 << _LANES) - 1),
    "dynamic_smem_size": lambda w: w.machine.dynamic_shared,
    "total_smem_size": lambda w: w.cta.shared.size - SHARED_BASE,
    "aggr_smem_size": lambda w: w.cta.shared.size,
    "reserved_smem_offset_begin": lambda w: 0,
    "reserved_smem_offset_end": lambda w: SHARED_BASE,
    "current_graph_exec": lambda w: 0,
}


def special(name: str, dtype):
    """fn(warp) -> row of a special register that never changes. EmulatorError if unknown."""
    plain = name.lstrip("%")
    match = re.fullmatch(r"(\w+)\.([xyz])", plain)
    try:
        f = _xyz(*match.groups()) if match else _SIMPLE[plain]
    except KeyError:
        raise EmulatorError(f"special register {name} is not modelled; known: {', '.join(sorted(_SIMPLE))}") from None

    def row(warp):
        values = np.broadcast_to(np.asarray(f(warp)), 32)
        return (values if dtype == np.bool_ else values.astype(np.int64)).astype(dtype)

    return row
