"""The presets of element types and layouts beyond bf16 [m, k] x [n, k], and changes of them."""

from __future__ import annotations

import re
from functools import cache

from kgen.build import compile_ptx
from kgen.plan import make_plan
from kgen.presets import spec_root
from kgen.render import render_project
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

KINDS = ("tf32", "fp8", "mxfp8", "mxfp4", "nvfp4", "mn_major")
DIRECT = "epilogue.store=direct epilogue.staging=2"  # 2 is the default: it stages nothing
# name: (preset, assignments)
CHANGED = {
    "fp8_plain": ("fp8", "dtype.b=same epilogue.ops=[] dtype.output=fp32 tile.n=128"),
    "fp8_direct_store": ("fp8", f"cluster.cta_group=1 warps.consumers=1 {DIRECT}"),
    "tf32_unified": (
        "tf32",
        "warps.roles=unified warps.consumers=1 cluster.cta_group=1 dtype.output=bf16 tile.n=128 pipeline.stages=3",
    ),
    "mxfp8_e5m2_one_cta": ("mxfp8", "dtype.input=e5m2 dtype.b=e4m3 cluster.cta_group=1 pipeline.stages=3"),
    "mxfp4_pair": ("mxfp4", "cluster.cta_group=2 epilogue.ops=[alpha] dtype.output=fp16"),
    "mxfp4_short": ("mxfp4", "pipeline.stages=1 pipeline.accumulators=1 epilogue.store=direct"),
    "nvfp4_two_consumers": ("nvfp4", "warps.consumers=2 tile.n=128 pipeline.stages=3"),
    "nvfp4_one_cta": ("nvfp4", "cluster.cta_group=1 pipeline.stages=3"),
    "m_major_one_cta": ("mn_major", f"layout.b=k cluster.cta_group=1 warps.consumers=1 tile.n=96 {DIRECT}"),
    "n_major_fp16": ("mn_major", "layout.a=k dtype.input=fp16 dtype.output=fp32 warps.consumers=1 tile.n=128"),
}


def text_of(name: str) -> str:
    """The spec of a preset or of a changed one."""
    base, assignments = CHANGED.get(name, (name, ""))
    text = (spec_root() / "gemm" / "sm_100a" / f"{base}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"# yaml-language-server:[^\n]*\n", "", text)
    return set_values(text, [*assignments.split(), f"name=gemm_{name}"]) if assignments else text


@cache
def plan_of(name: str):
    return make_plan(parse_spec(text_of(name), f"{name}.yaml").spec)


@cache
def project_of(name: str) -> dict[str, str]:
    return render_project(plan_of(name), text_of(name))


_BUILT: dict[tuple, str] = {}


def ptx_of(name: str, directory, *changes: tuple[str, str]) -> str:
    """Its PTX, after `changes` to the kernel's text; compiled once."""
    if (name, changes) not in _BUILT:
        _BUILT[name, changes] = _compiled(name, directory, changes)
    return _BUILT[name, changes]


def _compiled(name: str, directory, changes) -> str:
    files = dict(project_of(name))
    kernel = f"{plan_of(name).name}.cu"
    for before, after in changes:
        assert before in files[kernel], before
        files[kernel] = files[kernel].replace(before, after)
    for path, text in files.items():
        (directory / path).write_text(text)
    return compile_ptx(directory, plan_of(name).arch).artifact.read_text()
