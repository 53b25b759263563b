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
VARIANTS = {
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
    "finished_full_size": (9, f"epilogue.ops=[alpha,{BIAS},gelu_tanh]"),
}
# The epilogue's templates on Blackwell, which the presets do not reach; a card of the other kind cannot run them.
BLACKWELL = {
    "columns": (5, f"tile.n=64 epilogue.ops=[{BIAS},gelu_tanh,{SUMS}]"),
    "pairs": (9, "tile.n=128 epilogue.ops=[swiglu]"),
    "fp32": (5, "tile.n=64 dtype.output=fp32 epilogue.ops=[relu]"),
}


def spec_text(name: str) -> str:
    step, assignments = VARIANTS[name]
    return set_values(preset("gemm", step, "sm_90a").text, [*assignments.split(), f"name={name}"])


def variant_plan(name: str):
    return make_plan(parse_spec(spec_text(name), f"{name}.yaml").spec)


def blackwell_plan(name: str):
    step, assignments = BLACKWELL[name]
    text = set_values(preset("gemm", step, "sm_100a").text, [*assignments.split(), f"name={name}"])
    return make_plan(parse_spec(text, f"{name}.yaml").spec)


def variant_project(name: str) -> dict[str, str]:
    """Every file of the variant's project, by relative path."""
    return render_project(variant_plan(name), spec_text(name))


def preset_plans() -> list:
    return [make_plan(parse_spec(p.text, str(p.path)).spec) for p in presets()]
