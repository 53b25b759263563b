"""GEMM on Hopper: from the user's choices to resources.

wgmma reads both operands from shared memory in 128-byte swizzled rows (PTX ISA, wgmma matrix descriptor), so a k tile
is 64 elements deep; accumulators stay in the registers of the warpgroup that multiplies.
"""

from __future__ import annotations

from kgen.arch import ARCHS
from kgen.errors import PlanError
from kgen.plan.common import GemmPlan
from kgen.plan.epilogue import headers
from kgen.plan.gemm_sm90a.geometry import Geometry
from kgen.plan.gemm_sm90a.handover import launch, pipelines, roles, tensor_maps
from kgen.plan.gemm_sm90a.limits import register_limits, shape_limits
from kgen.plan.gemm_sm90a.memory import smem_map
from kgen.plan.gemm_sm90a.wording import constants, parameters, parts
from kgen.plan.smem import smem_limits
from kgen.spec.gemm.sm90a import Spec


def make_plan(spec: Spec) -> GemmPlan:
    """Derive the plan of `spec`; raises PlanError with every limit that the spec exceeds."""
    g = Geometry(spec, ARCHS[spec.arch])
    smem = smem_map(g, g.stages)
    too_big = smem_limits(g.arch, g.residents, g.stages, g.stage_bytes, lambda stages: smem_map(g, stages))
    if refusals := [*shape_limits(g), *register_limits(g), *too_big]:
        raise PlanError(refusals)
    return GemmPlan(
        family="gemm",
        name=spec.name,
        about=" ".join(spec.about.split()),
        arch=g.arch,
        skeleton=f"gemm/{g.arch.folder}/{spec.warps.roles}.cu",
        parts=parts(g),
        parameters=parameters(g),
        constants=constants(g, smem),
        smem=smem,
        pipelines=pipelines(g),
        roles=roles(g),
        tensor_maps=tensor_maps(g),
        launch=launch(g, smem),
        input=g.input,
        output=g.output,
        headers=headers(g.finish, g.input, g.output),
        mma_shape=(64, spec.tile.n, 16),
        split_registers=spec.warps.registers is not None,
        cta_tile=(g.block_m, g.block_n, spec.tile.k),
        cluster_tile=(g.cluster_m * g.block_m, g.cluster_n * g.block_n),
        stages=g.stages,
        k_tiles=1 if spec.k_loop == "once" else None,
        schedule=spec.schedule.kind,
        group_m=spec.schedule.group_m,
        ctas=None if spec.schedule.ctas == "auto" else spec.schedule.ctas,
        problem=(spec.problem.m, spec.problem.n, spec.problem.k),
        finish=g.finish,
    )
