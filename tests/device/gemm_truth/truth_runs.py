"""Which GEMMs are compared bit for bit between a card and the emulator, and their operands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kgen.emulation import Problem, Shape, make_problem, shapes
from kgen.operands import Operand
from kgen.plan import make_plan
from kgen.plan.common import GemmPlan
from kgen.presets import presets
from kgen.spec.base import parse_spec
from kgen.spec.edit import set_values

# fp32 output shows every bit of the accumulator; the others how it is rounded.
TYPES = (("bf16", "bf16"), ("fp16", "fp16"), ("bf16", "fp32"), ("fp16", "fp32"))


@dataclass(frozen=True)
class TruthKernel:
    """A preset with given element types."""

    key: str
    text: str
    plan: GemmPlan


def kernels() -> Iterator[TruthKernel]:
    for p in presets("gemm", "sm_90a"):
        for inputs, output in TYPES:
            text = set_values(p.text, [f"dtype.input={inputs}", f"dtype.output={output}"])
            yield TruthKernel(f"step{p.step} {inputs} {output}", text, make_plan(parse_spec(text).spec))


def problems(plan: GemmPlan) -> Iterator[tuple[str, Problem]]:
    for shape in shapes(plan):
        yield "x".join(map(str, shape)), wide_problem(plan, shape)


def wide_problem(plan: GemmPlan, shape: Shape) -> Problem:
    """Normal numbers times powers of two from 2^-6 to 2^6, so that products of one instruction differ in exponent and
    the tensor core's truncation is seen."""
    problem = make_problem(plan, shape, 11, "normal")
    rng = np.random.default_rng([12, *shape])
    a, b = (_widened(x.stored, rng) for x in (problem.a, problem.b))
    return replace(problem, a=a, b=b)


def _widened(stored: np.ndarray, rng: np.random.Generator) -> Operand:
    values = (stored.astype(float) * 2.0 ** rng.integers(-6, 7, stored.shape)).astype(stored.dtype)
    return Operand(values, values.astype(float), None)


def digest(*arrays: np.ndarray) -> str:
    """The bits of arrays, in short."""
    h = hashlib.sha256()
    for array in arrays:
        h.update(np.ascontiguousarray(array).tobytes())
    return h.hexdigest()[:24]
