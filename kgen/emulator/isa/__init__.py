"""The instructions, one file per family. Importing this fills the registry."""

from kgen.emulator.isa import (  # noqa: F401
    atomics,
    bits,
    clc,
    cluster,
    compare,
    control,
    convert,
    cp_async,
    floating,
    half,
    integer,
    loads,
    matrix,
    mbarriers,
    moves,
    narrow,
    tcgen05,
    tma,
    warpwide,
    wgmma,
)
