"""Plan -> {relative path: text}. No files are written here and nothing is computed that the plan could say.

The delimiters leave C++ and inline PTX alone: `${ value }`, `/*% statement %*/`, `/*# comment #*/`.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

import jinja2

from kgen import render_epilogue
from kgen.flags import nvcc_flags
from kgen.plan.common import GemmPlan
from kgen.plan.resources import Barrier, Constant, SmemRegion

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
    env.globals.update(numbered=_numbered, constant_lines=_constant_lines, arrivals=_arrivals)
    return env


def _numbered(form: str, count: int, per_line: int) -> list[str]:
    """`form` with 0..count-1 filled in, comma-separated, `per_line` to a line."""
    items = [form.format(i) for i in range(count)]
    return [", ".join(items[i : i + per_line]) for i in range(0, count, per_line)]


def _commented(lines: list[tuple[str, str]]) -> list[str]:
    """Code with its comments aligned, as far as lines stay short; a longer line's comment follows it directly."""
    column = max((len(code) for code, _ in lines if len(code) <= 60), default=0) + 2
    return [f"{code:<{column - 2}}  // {why}" if why else code for code, why in lines]


def _constant_lines(group: tuple[Constant, ...]) -> list[str]:
    return _commented([(f"constexpr int {c.name} = {c.expr};", c.why) for c in group])


def _member(r: SmemRegion) -> str:
    return f"{r.ctype} {r.name}" + "".join(f"[{e}]" for e in r.extents) + ";"


def _arrivals(b: Barrier) -> str:
    """The expression for a barrier's count: its named constant where more than one arrives."""
    return "1" if b.arrivals == 1 else f"{b.name.upper()}_ARRIVALS"


class _Renderer:
    """Renders parts of one plan. Parts are written at column 0 and indented to where they are placed."""

    def __init__(self, plan):
        self.plan = plan
        self.env = environment()

    def part(self, path: str, depth: int = 0, **names) -> str:
        text = self.env.get_template(path).render(plan=self.plan, part=self.part, **self.vocabulary, **names)
        return text.strip("\n").replace("\n", "\n" + "  " * depth) if depth else text.strip("\n")

    @cached_property
    def vocabulary(self) -> dict:
        return {
            "nvcc_flags": nvcc_flags(self.plan.arch),
            "about_lines": textwrap.wrap(self.plan.about, LINE - 3),
            "name_width": max(6, *(len(r.name) for r in self.plan.smem.regions)),
            "storage_lines": _commented([(_member(r), r.why) for r in self.plan.smem.regions]),
            "parameter_lines": self.parameter_lines(),
            "launcher_locals": LAUNCHER_LOCALS,
            **render_epilogue.vocabulary(self.plan),
        }

    def parameter_lines(self) -> list[str]:
        """The kernel's parameters, as many to a line as fit."""
        lines = [""]
        for name in self.plan.parameters:
            item = PARAMETER_TYPES[name] + name + ("," if name != self.plan.parameters[-1] else "")
            if len(lines[-1]) + len(item) > LINE - 5:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + item
        return lines

    def wrappers(self, body: str) -> str:
        """The PTX wrappers that `body` calls, and those they call, in the order of the template files."""
        known: dict[str, str] = {}
        for path in PTX_FAMILIES:
            module = self.env.get_template(path).make_module({"plan": self.plan, **self.vocabulary})
            known |= {n: str(getattr(module, n)()).strip("\n") for n in dir(module) if not n.startswith("_")
                      and callable(getattr(module, n))}  # fmt: skip
        used: set[str] = set()
        text = body
        while True:
            fresh = known.keys() & set(re.findall(r"\b(\w+)(?:<[^>]*>)?\(", text)) - used
            if not fresh:
                break
            used |= fresh
            text = "\n".join(known[n] for n in fresh)
        families = ([known[n] for n in self._macro_order(path) if n in used] for path in PTX_FAMILIES)
        return "\n\n".join("\n".join(family) for family in families if family)

    def _macro_order(self, path: str) -> list[str]:
        source, _, _ = self.env.loader.get_source(self.env, path)
        return re.findall(r"/\*% macro (\w+)\(", source)


PTX_FAMILIES = ("ptx/warp.cu", "ptx/memory.cu", "ptx/cluster.cu", "ptx/mbarrier.cu", "ptx/tma.cu", "ptx/wgmma.cu",
                "ptx/tcgen05.cu", "ptx/clc.cu", "gemm/common/epilogue/functions.cu")  # fmt: skip

# Files of a project whose names do not depend on the kernel.
SHARED_FILES = ("main.cu", "Makefile", "CMakeLists.txt", "gate.sh", "README.md")

UNCHECKED = "not proven: the barrier protocol was not checked"

PARAMETER_TYPES = {
    "map_a": "const __grid_constant__ CUtensorMap ",
    "map_b": "const __grid_constant__ CUtensorMap ",
    "map_sfa": "const __grid_constant__ CUtensorMap ",
    "map_sfb": "const __grid_constant__ CUtensorMap ",
    "map_d": "const __grid_constant__ CUtensorMap ",
    "a": "const Input *__restrict__ ",
    "b": "const Input *__restrict__ ",
    "d": "Output *__restrict__ ",
    "lda": "int64_t ",
    "ldb": "int64_t ",
    "ldd": "int64_t ",
    "counters": "uint32_t *__restrict__ ",
    "partials": "float *",
    "e": "const __grid_constant__ Epilogue ",
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
    "counters": "uint32_t *counters = static_cast<uint32_t *>(args.workspace);",
    "partials": "float *partials = reinterpret_cast<float *>("
    "static_cast<char *>(args.workspace) + counter_bytes(m, n));",
}


def render_kernel(plan: GemmPlan) -> str:
    """The text of `<name>.cu`."""
    r = _Renderer(plan)
    body = r.part(plan.skeleton)
    return _tidy(r.part("file.cu", body=body, wrappers=r.wrappers(body)))


def render_project(plan: GemmPlan, spec_text: str, certificate: str = UNCHECKED) -> dict[str, str]:
    """Every file of the project, by relative path. `spec_text` travels with it unchanged, as spec.yaml; README.md
    tells what the protocol checker proved (`kgen.protocol.certify`)."""
    r = _Renderer(plan)
    files = {
        f"{plan.name}.cu": render_kernel(plan),
        f"{plan.name}.h": r.part("project/header.h"),
        f"test_{plan.name}.py": r.part("project/test.py"),
    }
    files |= {name: r.part(f"project/{name}", certificate=certificate) for name in SHARED_FILES}
    return {path: _tidy(text) for path, text in sorted(files.items())} | {"spec.yaml": spec_text}


def _tidy(text: str) -> str:
    """No trailing blanks, no more than one blank line (two in Python, as its style has it), one newline at the end."""
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    most = "\n\n\n" if lines.startswith('"""') else "\n\n"
    return re.sub(r"\n{3,}", most, lines).strip("\n") + "\n"
