"""What of the machine kgen can use, what each missing piece disables, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError

from rich.table import Table

from kgen.arch import ARCHS
from kgen.cublas_abi import find_cublas
from kgen.device import cards
from kgen.errors import ToolchainError
from kgen.nvrtc import nvrtc_version
from kgen.toolchain import CUDA_HOME, HOW_TO_GET, find_toolchain, nvcc_candidates

PACKAGES = ("jinja2", "pydantic", "pyyaml", "typer", "rich", "numpy", "ml-dtypes", "cuda-python")


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `disables` and `how_to_get` are said of the thing, found or not."""

    name: str
    found: bool
    detail: str
    disables: str
    how_to_get: str


def diagnose() -> list[Finding]:
    """Looks at everything kgen may use, in the order a build needs it. What is missing raises nothing."""
    return [
        _python(),
        _packages(),
        _nvcc(),
        _host_compiler(),
        _nvrtc(),
        _card(),
        _cublas(),
        _tool("compute-sanitizer", "memory and race checks on the card", "it comes with a CUDA toolkit"),
        _tool("cmake", "CMake build of a generated project", "apt-get install cmake"),
        _tool("make", "make in a generated project", "apt-get install make"),
    ]


def doctor_table(findings: Sequence[Finding]) -> Table:
    """For a person: what is there, and for what is not, what it disables and how to get it."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("without it, no", overflow="fold")
    for f in findings:
        missing = "" if f.found else f"{f.disables}\n[dim]{_escape(f.how_to_get)}[/dim]"
        mark = "[green]ok[/green]" if f.found else "[yellow]--[/yellow]"
        table.add_row(mark, _escape(f.name), _escape(f.detail), missing)
    return table


def doctor_json(findings: Sequence[Finding]) -> str:
    """For a script: a list of the findings' fields."""
    return json.dumps([asdict(f) for f in findings], indent=2)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def _python() -> Finding:
    return Finding("Python", True, platform.python_version(), "kgen itself", "Python 3.11 or later")


def _packages() -> Finding:
    have, lack = [], []
    for name in PACKAGES:
        try:
            have.append(f"{name} {importlib.metadata.version(name)}")
        except PackageNotFoundError:
            lack.append(name)
    detail = ", ".join(have) + (f"; missing: {', '.join(lack)}" if lack else "")
    return Finding("Python packages", not lack, detail, "kgen itself", "pip install kgen")


def _nvcc() -> Finding:
    disables = "libraries, executables and compile gate"
    try:
        tools = find_toolchain()
    except ToolchainError as e:
        return Finding("nvcc", False, str(e), disables, HOW_TO_GET)
    detail = f"{tools.version} at {tools.nvcc} ({tools.source})"
    others = [f"{nvcc} ({source})" for nvcc, source in nvcc_candidates()[1:]]
    if others:
        detail += f"; not used: {', '.join(others)}"
    if home := _ignored_home(tools.source):
        detail += f"; CUDA_HOME={home} has no bin/nvcc"
    return Finding("nvcc", True, detail, disables, HOW_TO_GET)


def _ignored_home(source: str) -> str:
    return "" if source == CUDA_HOME else os.environ.get("CUDA_HOME", "")


def _host_compiler() -> Finding:
    name = os.environ.get("NVCC_CCBIN") or "gcc"
    return _tool(
        name, "libraries, executables and compile gate", "apt-get install g++", label="host compiler"
    )


def _nvrtc() -> Finding:
    version = nvrtc_version()
    return Finding(
        "NVRTC",
        version is not None,
        version or "not found",
        "PTX on a machine without nvcc",
        "pip install 'kgen[toolchain]'",
    )


def _card() -> Finding:
    found, why_not = cards()
    lines = []
    for i, c in enumerate(found):
        major, minor = c.compute_capability
        fits = f"runs {c.arch.name} kernels" if c.arch else f"runs none of {', '.join(ARCHS)}"
        lines.append(
            f"{i}: {c.name}, compute capability {major}.{minor}, {c.sm_count} SMs, "
            f"{c.memory_bytes / 2**30:.0f} GiB, L2 {c.l2_bytes / 2**20:.0f} MiB, "
            f"driver for CUDA {c.driver_version}, {fits}"
        )
    return Finding(
        "driver and card",
        bool(found),
        "\n".join(lines) or why_not or "the driver shows no card",
        "run of a kernel: tests stop at the compile gate, and there is no bench",
        "a Hopper card with a driver for CUDA 13, visible to this process (CUDA_VISIBLE_DEVICES)",
    )


def _cublas() -> Finding:
    """Loads what `kgen bench` would load: cuBLAS and cuBLASLt of one installation."""
    libraries, where = find_cublas()
    return Finding(
        "cuBLAS, cuBLASLt",
        libraries is not None,
        where,
        "comparison with cuBLAS and cuBLASLt in bench",
        "pip install nvidia-cublas, or KGEN_CUBLAS_DIR",
    )


def _tool(command: str, disables: str, how_to_get: str, *, label: str = "") -> Finding:
    path = shutil.which(command)
    detail = f"{_first_version(path)} at {path}".strip() if path else "not found"
    return Finding(label or command, path is not None, detail, disables, how_to_get)


def _first_version(path: str) -> str:
    try:
        out = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+\.\d+(\.\d+)*", re.sub(r"\([^)]*\)", "", out))
    return match[0] if match else ""
