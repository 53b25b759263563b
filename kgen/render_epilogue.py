"""The lines of an epilogue that follow from its list of steps: members, expressions, checks of arguments."""

from __future__ import annotations

import re
import textwrap

from kgen.expression import DEVICE, GENERIC, NUMPY, written
from kgen.plan.common import GemmPlan
from kgen.plan.epilogue import WHOLE, Argument, Step, members

WIDTH = 114  # of a line that will be indented a little


def vocabulary(plan: GemmPlan) -> dict:
    """What templates may use of it; nothing where the plan has no epilogue."""
    f = plan.finish
    if f is None:
        return {"finish_words": [], "finish_refusals": [], "finish_launch": []}
    return {
        "finish_words": textwrap.wrap(f"Before rounding: {', '.join(f.words)}.", WIDTH),
        "finish_members": [f"{ctype}{name};" for ctype, name in members(f)],
        "finish_before": [line for step in f.before for line in _assignment(step)],
        "finish_after": [line for step in f.steps[len(f.before) :] for line in _assignment(step)],
        "finish_clamps_row": bool(f.broadcasts & {"row", "matrix"}),
        "finish_clamps_column": bool(f.broadcasts & {"column", "matrix"}),
        "finish_refusals": _refusals(plan),
        "finish_launch": _launch(plan),
        "finish_code_words": [f"`{word}`" for word in f.words],
        "finish_c_members": _c_members(plan),
        "check_before": [line for step in f.before for line in _checked(step)],
        "check_after": [line for step in f.steps[len(f.before) :] for line in _checked(step)],
        "finish_ctypes": [f'("{name}", ctypes.{_ctypes(ctype)}),' for ctype, name in members(f)],
        "finish_table": _table(plan),
        "finish_numpy": [line for step in f.steps for line in _numpy(step)],
    }


def _assignment(step: Step) -> list[str]:
    names, ahead = {"x": "x", "y": "y"}, []
    for name, a in step.names.items():
        names[name] = a.read
        if step.reads_ahead and a.broadcast != "scalar":
            ahead.append(f"const float {a.name} = {a.read};")
            names[name] = a.name
    line = f"x = {written(step.tree, names, DEVICE)};"
    comment = f"  // {step.op}"
    if ahead:
        return [comment.strip(), *ahead, *_wrap(line, "    ")]
    if len(line + comment) <= WIDTH:
        return [line + comment]
    return [comment.strip(), *_wrap(line, "    ")]


def _checked(step: Step) -> list[str]:
    """The step in the program's own check, for `Real` of either precision."""
    names = {"x": "x", "y": "y"}
    for name, a in step.names.items():
        at = {"row": "[row]", "column": "[column]", "matrix": f"[row * g.{a.stride} + column]"}.get(a.broadcast)
        element = f"static_cast<const {a.dtype.ctype} *>(g.{a.name}){at}" if at else f"g.{a.name}"
        names[name] = f"Real(float({element}))"
    line = f"x = {written(step.tree, names, GENERIC)};"
    return _wrap(line, "    ")


def _numpy(step: Step) -> list[str]:
    """The step in the project's test, which has the arguments by name in `e`."""
    names = {"x": "x", "y": "y"} | {name: f'e["{a.name}"]' for name, a in step.names.items()}
    lines = ["x, y = x[:, 0::2], x[:, 1::2]"] if step.pairs else []
    code = f"x = {written(step.tree, names, NUMPY)}"
    if len(code) > WIDTH - 10:
        body = textwrap.wrap(code[4:], WIDTH - 14, break_long_words=False)
        return [*lines, "x = (", *("    " + line for line in body), ")"]
    return [*lines, code]


def _ctypes(ctype: str) -> str:
    return {"float ": "c_float", "int64_t ": "c_int64"}.get(ctype, "c_void_p")


def _table(plan: GemmPlan) -> list[str]:
    how = {r.op: r.how for r in plan.finish.reductions}
    return [
        f'("{a.name}", "{a.broadcast}", {a.columns != WHOLE}, {a.dtype.numpy}, "{a.stride}", "{how.get(a.name, "")}"),'
        for a in plan.finish.arguments
    ]


def _refusals(plan: GemmPlan) -> list[str]:
    arrays = [f"!args.{a.name}" for a in plan.finish.arrays]
    strides = [f"args.{a.stride} < args.{a.columns}" for a in plan.finish.matrices]
    return [
        _wrapped(f"if ({' || '.join(tests)}) return cudaErrorInvalidValue;") for tests in (arrays, strides) if tests
    ]


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
            lines.append(f"float {a.name};")
        elif a.written:
            what = "sums are added to it" if a.op.endswith("sum") else "raised to the largest absolute value"
            lines.append(f"float *{a.name}; /* {a.extents} fp32, {what}; clear it before the call */")
        else:
            lines.append(f"const void *{a.name}; /* {a.extents} {a.dtype.name} */")
        if a.stride:
            lines.append(f"int64_t {a.stride};")
    return lines


def _wrapped(line: str) -> str:
    return "\n".join(_wrap(line, "      "))


def _wrap(line: str, indent: str) -> list[str]:
    """Lines broken at blanks, but not within a type."""
    whole = re.sub(r"<[^<>]* \*>", lambda match: match.group().replace(" ", "\0"), line)
    lines = textwrap.wrap(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\0", " ") for part in lines]
