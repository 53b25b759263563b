"""Specs that no preset uses: each is a preset with a few fields changed, and together with the presets they reach every
template. Tests render, compile and (on a card) run them.
"""

from __future__ import annotations

from kgen.plan import make_plan
from kgen.presets import preset, presets
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

# Steps of an epilogue that take more than a word, without blanks.
BIAS = '{"op":"bias","type":"bf16"}'
C = '{"op":"beta_c","type":"bf16"}'
LEAKY = '{"op":"expr","name":"leaky","scalars":["slope"],"code":"x>0?x:slope*x"}'
SUMS = "row_sum,column_sum,row_max_abs,column_max_abs"

# name: (preset step, assignments as `kgen new --set` takes them)
HOPPER = {
    "fp16": (9, "dtype.input=fp16 dtype.output=fp16"),
    "fp32_out": (9, "dtype.output=fp32"),
    "fp32_out_unified": (6, "dtype.output=fp32"),
    "share_a": (9, "cluster.multicast=a"),
    "cluster_of_4": (9, "cluster.size=4"),
    "grid_share_a": (8, "schedule.kind=grid cluster.multicast=a"),
    "grid_share_b": (8, "schedule.kind=grid"),
    "fixed_ctas": (9, "schedule.ctas=14 schedule.group_m=3"),
    "direct_store": (9, "epilogue.store=direct"),
    "wide_tile": (9, "tile.m=128 tile.n=128"),
    "three_consumers": (
        9,
        "tile.n=192 warps.consumers=3 warps.registers.producer=32 warps.registers.consumer=160 pipeline.stages=3",
    ),
    "three_ctas_per_sm": (6, "tile.m=128 tile.n=128 pipeline.stages=2 epilogue.staging=1 schedule.ctas_per_sm=3"),
    "one_tile_specialized": (7, "schedule.kind=single"),
    "one_tile_tma": (4, "schedule.kind=single"),
    "narrow": (3, "tile.n=8"),
    "odd_width": (7, "tile.n=40 epilogue.store=direct"),
    "shallow": (9, "pipeline.stages=2"),
    "persistent_threads": (3, "schedule.kind=persistent schedule.ctas_per_sm=2"),
    "finished": (7, f"tile.n=64 epilogue.ops=[alpha,{C},{BIAS},row_scale,column_scale,gelu_tanh,{LEAKY},cast,{SUMS}]"),
    "finished_fp32": (8, f"tile.n=64 dtype.output=fp32 epilogue.ops=[{BIAS},gelu_erf,residual,silu,relu]"),
    "finished_pairs": (9, f"tile.n=128 epilogue.ops=[{BIAS},swiglu,column_scale,row_max_abs]"),
    "finished_pairs_fp32": (5, "tile.n=64 dtype.output=fp32 epilogue.ops=[swiglu,row_scale]"),
    "finished_direct": (3, "tile.n=40 epilogue.ops=[alpha,bias,relu,row_sum]"),
    "finished_direct_pairs": (3, "tile.n=40 epilogue.ops=[swiglu,column_max_abs]"),
    "out_e4m3": (7, "tile.n=128 dtype.output=e4m3 epilogue.ops=[cast]"),
    "finished_full_size": (9, f"epilogue.ops=[alpha,{BIAS},gelu_tanh]"),
}
_SPLIT = "warps.registers.control=64 warps.registers.epilogue=216"
BLACKWELL = {
    "b_fp16": (9, "dtype.input=fp16 dtype.output=fp16"),
    "b_fp32_out": (9, "dtype.output=fp32"),
    "b_fp32_out_unified": (6, "dtype.output=fp32"),
    "b_direct_store": (9, "epilogue.store=direct epilogue.staging=2"),
    "b_direct_fp32": (7, "epilogue.store=direct dtype.output=fp32 tile.n=96"),
    "b_two_accumulators": (7, "pipeline.accumulators=2 tile.n=128"),
    "b_two_by_two": (9, "pipeline.accumulators=2 tile.n=128"),
    "b_split": (8, f"{_SPLIT}"),
    "b_split_two_consumers": (9, "warps.registers.control=64 warps.registers.epilogue=136"),
    "b_split_one_cta": (7, f"{_SPLIT} epilogue.staging=3"),
    "b_grid": (7, "schedule.kind=grid"),
    "b_grid_pair": (8, "schedule.kind=grid"),
    "b_one_tile_specialized": (7, "schedule.kind=single"),
    "b_one_tile_tma": (4, "schedule.kind=single"),
    "b_n32": (7, "tile.n=32 epilogue.store=direct"),
    "b_n32_fp32": (6, "tile.n=32 dtype.output=fp32"),
    "b_n64_pair": (8, "tile.n=64 pipeline.accumulators=2"),
    "b_shallow": (9, "pipeline.stages=2"),
    "b_one_stage": (7, "pipeline.stages=1"),
    "b_deep": (7, "tile.n=64 pipeline.stages=8"),
    "b_fixed_ctas": (9, "schedule.ctas=6 schedule.group_m=3"),
    "b_two_ctas_per_sm": (7, "tile.n=128 pipeline.stages=2 epilogue.staging=1 schedule.ctas_per_sm=2"),
    "b_persistent_threads": (3, "schedule.kind=persistent"),
    "b_finished": (5, f"tile.n=64 epilogue.ops=[{BIAS},gelu_tanh,{SUMS}]"),
    "b_finished_pairs": (9, "tile.n=128 epilogue.ops=[swiglu]"),
    "b_out_e4m3": (7, "tile.n=128 dtype.output=e4m3 epilogue.ops=[cast]"),
    "b_finished_fp32": (5, "tile.n=64 dtype.output=fp32 epilogue.ops=[relu]"),
}
VARIANTS = HOPPER | BLACKWELL


def spec_text(name: str) -> str:
    step, assignments = VARIANTS[name]
    arch = "sm_100a" if name in BLACKWELL else "sm_90a"
    return set_values(preset("gemm", step, arch).text, [*assignments.split(), f"name={name}"])


def variant_plan(name: str):
    return make_plan(parse_spec(spec_text(name), f"{name}.yaml").spec)


def variant_project(name: str) -> dict[str, str]:
    """Every file of the variant's project, by relative path."""
    return render_project(variant_plan(name), spec_text(name))


def preset_plans(arch: str | None = None) -> list:
    return [make_plan(parse_spec(p.text, str(p.path)).spec) for p in presets(arch=arch)]


def named_plans(arch: str) -> dict:
    """Presets (`gemm_step9`) and variants of one architecture, by name: both architectures name their presets alike."""
    ours = BLACKWELL if arch == "sm_100a" else HOPPER
    return {p.name: p for p in preset_plans(arch)} | {name: variant_plan(name) for name in ours}
