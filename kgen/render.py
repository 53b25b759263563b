"""Plan -> {relative path: text}. No files are written here and nothing is computed that the plan could say.

The delimiters leave C++ and inline PTX alone: `${ value }`, `/*% statement %*/`, `/*# comment #*/`.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2

from kgen.plan.common import GemmPlan
from kgen.plan.resources import Barrier, Constant

LINE = 118


def template_root() -> Path:
    """The template folder: inside the installed package, or at the top of a checkout."""
    packaged = Path(str(files("kgen"))) / "_data" / "templates"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "templates"


@cache
def environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_root()),
        variable_start_string="${",
        variable_end_string="}",
        block_start_string="/*%",
        block_end_string="%*/",
        comment_start_string="/*#",
        comment_end_string="#*/",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    env.globals.update(numbered=_numbered, constant_line=_constant_line, arrivals=_arrivals)
    return env


def _numbered(form: str, count: int, per_line: int) -> list[str]:
    """`form` with 0..count-1 filled in, comma-separated, `per_line` to a line."""
    items = [form.format(i) for i in range(count)]
    return [", ".join(items[i : i + per_line]) for i in range(0, count, per_line)]


def _constant_line(c: Constant, group: tuple[Constant, ...]) -> str:
    """One constant, its comment aligned with those of its group where that keeps lines short."""
    code = [f"constexpr int {x.name} = {x.expr};" for x in group]
    column = max((len(line) for line in code if len(line) <= 56), default=0) + 2
    line = f"constexpr int {c.name} = {c.expr};"
    return f"{line:<{column}}// {c.why}" if c.why and len(line) < column else f"{line}  // {c.why}" if c.why else line


def _arrivals(b: Barrier) -> str:
    """The expression for a barrier's count: its named constant where more than one arrives."""
    return "1" if b.arrivals == 1 else f"{b.name.upper()}_ARRIVALS"


class _Renderer:
    """Renders parts of one plan. Parts are written at column 0 and indented to where they are placed."""

    def __init__(self, plan):
        self.plan = plan
        self.env = environment()

    def part(self, path: str, depth: int = 0, **names) -> str:
        text = self.env.get_template(path).render(plan=self.plan, part=self.part, **self.vocabulary(), **names)
        return text.strip("\n").replace("\n", "\n" + "  " * depth) if depth else text.strip("\n")

    def vocabulary(self) -> dict:
        return {
            "about_lines": textwrap.wrap(self.plan.about, LINE - 3),
            "parameter_lines": self.parameter_lines(),
            "launcher_locals": LAUNCHER_LOCALS,
        }

    def parameter_lines(self) -> list[str]:
        """The kernel's parameters, tensor maps on a line of their own where there are any."""
        typed = [PARAMETER_TYPES[p] + p for p in self.plan.parameters]
        maps = [t for t in typed if "CUtensorMap" in t]
        return [line for line in (", ".join(maps), ", ".join(typed[len(maps) :])) if line]

    def wrappers(self, body: str) -> str:
        """The PTX wrappers that `body` calls, and those they call, in the order of the template files."""
        known: dict[str, str] = {}
        for path in PTX_FAMILIES:
            module = self.env.get_template(path).make_module({"plan": self.plan, **self.vocabulary()})
            known |= {n: str(getattr(module, n)()).strip("\n") for n in dir(module) if not n.startswith("_")
                      and callable(getattr(module, n))}  # fmt: skip
        used: set[str] = set()
        text = body
        while True:
            fresh = {n for n in known if n not in used and re.search(rf"\b{n}\b(<[^>]*>)?\(", text)}
            if not fresh:
                break
            used |= fresh
            text = "\n".join(known[n] for n in fresh)
        order = [n for path in PTX_FAMILIES for n in self._macro_order(path)]
        return "\n\n".join(known[n] for n in order if n in used)

    def _macro_order(self, path: str) -> list[str]:
        source, _, _ = self.env.loader.get_source(self.env, path)
        return re.findall(r"/\*% macro (\w+)\(", source)


PTX_FAMILIES = ("ptx/warp.cu", "ptx/memory.cu", "ptx/cluster.cu", "ptx/mbarrier.cu", "ptx/tma.cu", "ptx/wgmma.cu")

PARAMETER_TYPES = {
    "map_a": "const __grid_constant__ CUtensorMap ",
    "map_b": "const __grid_constant__ CUtensorMap ",
    "map_d": "const __grid_constant__ CUtensorMap ",
    "a": "const Input *__restrict__ ",
    "b": "const Input *__restrict__ ",
    "d": "Output *__restrict__ ",
    "lda": "int64_t ",
    "ldb": "int64_t ",
    "ldd": "int64_t ",
    "m": "int ",
    "n": "int ",
    "k": "int ",
}

LAUNCHER_LOCALS = {
    "a": "const Input *a = static_cast<const Input *>(args.a);",
    "b": "const Input *b = static_cast<const Input *>(args.b);",
    "d": "Output *d = static_cast<Output *>(args.d);",
    "lda": "int64_t lda = args.lda;",
    "ldb": "int64_t ldb = args.ldb;",
    "ldd": "int64_t ldd = args.ldd;",
}


def render_kernel(plan: GemmPlan) -> str:
    """The text of `<name>.cu`."""
    r = _Renderer(plan)
    body = r.part(plan.skeleton)
    text = r.part("file.cu", body=body, wrappers=r.wrappers(body))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n"))) + "\n"
