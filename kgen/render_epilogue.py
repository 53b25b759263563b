"""The lines of an epilogue that follow from its list of steps: members, expressions, checks of arguments."""

from __future__ import annotations

import textwrap

from kgen.expression import DEVICE, written
from kgen.plan.common import GemmPlan
from kgen.plan.epilogue import Argument, Step, members

WIDTH = 114  # of a line that will be indented a little


def vocabulary(plan: GemmPlan) -> dict:
    """What templates may use of it; nothing where the plan has no epilogue."""
    f = plan.finish
    if f is None:
        return {"finish_refusals": [], "finish_launch": []}
    return {
        "finish_members": [f"{ctype}{name};" for ctype, name in members(f)],
        "finish_before": [line for step in f.before for line in _assignment(step)],
        "finish_after": [line for step in f.steps[len(f.before) :] for line in _assignment(step)],
        "finish_clamps_row": bool(f.broadcasts & {"row", "matrix"}),
        "finish_clamps_column": bool(f.broadcasts & {"column", "matrix"}),
        "finish_refusals": _refusals(plan),
        "finish_launch": _launch(plan),
        "finish_c_members": _c_members(plan),
    }


def _assignment(step: Step) -> list[str]:
    names = {"x": "x", "y": "y"} | {name: a.read for name, a in step.names.items()}
    line = f"x = {written(step.tree, names, DEVICE)};"
    comment = f"  // {step.op}"
    if len(line + comment) <= WIDTH:
        return [line + comment]
    return [comment.strip(), *textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False)]


def _refusals(plan: GemmPlan) -> list[str]:
    arrays = [f"!args.{a.name}" for a in plan.finish.arrays]
    strides = [f"args.{a.stride} < args.{a.columns}" for a in plan.finish.matrices]
    return [_wrapped(f"if ({' || '.join(tests)}) return cudaErrorInvalidValue;") for tests in (arrays, strides) if tests]


def _launch(plan: GemmPlan) -> list[str]:
    values = ["m", plan.d_columns]
    for a in plan.finish.arguments:
        values.append(f"args.{a.name}" if a.broadcast == "scalar" or a.written else _cast(a))
        if a.stride:
            values.append(f"args.{a.stride}")
    return [_wrapped(f"Epilogue e = {{{', '.join(values)}}};")]


def _cast(a: Argument) -> str:
    return f"static_cast<{a.ctype}>(args.{a.name})"


def _c_members(plan: GemmPlan) -> list[str]:
    lines = []
    for a in plan.finish.arguments:
        if a.broadcast == "scalar":
            lines.append(f"float {a.name}; /* {a.op} */")
        elif a.written:
            what = "sums are added to it" if a.op.endswith("sum") else "raised to the largest absolute value"
            lines.append(f"float *{a.name}; /* {a.extents} fp32, {what}; clear it before the call */")
        else:
            lines.append(f"const void *{a.name}; /* {a.extents} {a.dtype.name} */")
        if a.stride:
            lines.append(f"int64_t {a.stride};")
    return lines


def _wrapped(line: str) -> str:
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="      ", break_long_words=False))
