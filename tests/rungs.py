"""The presets that have a word for a name on sm_100a, and variants of them for what they leave out."""

from __future__ import annotations

from kgen.commands.sources import source, source_of_text
from kgen.presets import named_presets
from kgen.spec.edit import set_values

RUNGS = {p.name: p for p in named_presets("gemm", "sm_100a")}
DIRECT = ["epilogue.store=direct", "epilogue.staging=2"]  # 2 is the default: it stages nothing
# Those that the presets leave out: one CTA instead of a pair, other stores, an odd raster.
VARIANTS = {
    "clc_alone": ("clc", ["cluster.cta_group=1", "warps.consumers=1"]),
    "clc_registers": (
        "clc",
        ["cluster.cta_group=1", "warps.consumers=1", "warps.registers={control: 64, epilogue: 216}", *DIRECT],
    ),
    "split_k_alone": ("split_k", ["cluster.cta_group=1", "tile.n=64", "schedule.split_k=3"]),
    "split_k_two": ("split_k", ["warps.consumers=2", "epilogue.staging=1", "tile.n=128"]),
    "fp32_chunks": ("chunked_store", ["dtype.output=fp32"]),
    "mn_major_alone": ("mn_major", ["cluster.cta_group=1", "warps.consumers=1", "tile.n=64"]),
    "serpentine_clc": ("clc", ["schedule.walk=serpentine", "schedule.group_m=2", "tile.n=64"]),
}


def made(name):
    """The source of a preset or a variant."""
    if name in RUNGS:
        return source(RUNGS[name].reference)
    base, assignments = VARIANTS[name]
    text = set_values(RUNGS[base].text, [*assignments, f"name={name}"])
    return source_of_text(text, name)


def rung_plans() -> list:
    return [made(name).plan for name in [*RUNGS, *VARIANTS]]
