"""Where the CUDA compiler, its headers and its libraries are.

nvcc is looked for in `CUDA_HOME`, then on `PATH`, then among the pip wheels installed beside kgen
(`pip install 'kgen[toolchain]'`). Nothing here compiles; see `kgen.build`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import ToolchainError

CUDA_HOME, ON_PATH, WHEELS = "CUDA_HOME", "PATH", "pip wheels"
HOW_TO_GET = "install a CUDA toolkit and set CUDA_HOME, or: pip install 'kgen[toolchain]'"


@dataclass(frozen=True)
class Toolchain:
    """One usable nvcc and what belongs to it. `version` is nvcc's own, e.g. "13.0.88"."""

    nvcc: Path
    version: str
    root: Path
    include_dir: Path
    lib_dir: Path
    source: str  # CUDA_HOME, PATH or pip wheels

    @property
    def link_flags(self) -> tuple[str, ...]:
        """Flags every link needs. The wheels' libraries are in lib/, but their nvcc.profile says lib64/."""
        return (f"-L{self.lib_dir}",) if self.source == WHEELS else ()

    @property
    def header_dirs(self) -> tuple[Path, ...]:
        """What nvcc adds to the include path by itself and NVRTC has to be told."""
        return header_dirs(self.include_dir)


@dataclass(frozen=True)
class Part:
    """A piece of the wheel toolchain: any of `paths` (below the CUDA root) shows that it is there."""

    wheel: str
    paths: tuple[str, ...]
    disables: str


# nvcc's wheel asks for its companions without an upper version, and does not ask for the last one at all.
PARTS = (
    Part("nvidia-nvvm", ("nvvm/bin/cicc",), "every compilation of device code"),
    Part("nvidia-cuda-crt", ("include/crt/host_config.h",), "every compilation"),
    Part("nvidia-cuda-runtime", ("include/cuda_runtime.h",), "every compilation"),
    Part(
        "nvidia-cuda-cccl", ("include/cccl/nv/target", "include/nv/target"), "<cuda_fp16.h> and <cuda_bf16.h>"
    ),
    Part("nvidia-cuda-runtime", ("lib/libcudart_static.a",), "linking libraries and executables"),
)


def find_toolchain() -> Toolchain:
    """The first nvcc of `CUDA_HOME`, `PATH`, pip wheels.

    Raises ToolchainError where there is none, where the one found does not run, and where the wheels are
    incomplete or of different CUDA releases: each with what it disables and how to get it.
    """
    for nvcc, source in nvcc_candidates():
        return _examine(nvcc, source)
    raise ToolchainError(
        f"no nvcc in CUDA_HOME ({os.environ.get('CUDA_HOME') or 'unset'}), on PATH, or among the pip wheels; "
        f"without it no library or executable is built and no kernel passes the compile gate. {HOW_TO_GET}"
    )


def nvcc_candidates() -> list[tuple[Path, str]]:
    """Every nvcc in sight with its source, best first. An unusable CUDA_HOME is passed over."""
    found = []
    home = os.environ.get("CUDA_HOME")
    if home and _executable(Path(home) / "bin" / "nvcc"):
        found.append((Path(home) / "bin" / "nvcc", CUDA_HOME))
    if on_path := shutil.which("nvcc"):
        found.append((Path(on_path), ON_PATH))
    found += [(root / "bin" / "nvcc", WHEELS) for root in wheel_roots() if _executable(root / "bin" / "nvcc")]
    return found


def wheel_roots() -> list[Path]:
    """The CUDA roots of NVIDIA's wheels in this Python's site-packages (nvidia/cu13), newest first."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    roots = [
        d
        for place in places
        for d in Path(place).glob("cu*")
        if re.fullmatch(r"cu\d+", d.name) and d.is_dir()
    ]
    return sorted(roots, key=lambda d: int(d.name[2:]), reverse=True)


def header_dirs(include_dir: Path) -> tuple[Path, ...]:
    """`include_dir` and, since CUDA 13, the folder below it that holds <nv/target> and <cuda/std/...>."""
    cccl = include_dir / "cccl"
    return (include_dir, cccl) if cccl.is_dir() else (include_dir,)


def device_header_dirs() -> tuple[Path, ...]:
    """Header folders for NVRTC: those of the nvcc in sight, else of the wheels (which need no nvcc).

    Raises ToolchainError where neither has <cuda_runtime.h>.
    """
    roots = [_root(nvcc) for nvcc, _ in nvcc_candidates()] + wheel_roots()
    for root in roots:
        if (root / "include" / "cuda_runtime.h").is_file():
            return header_dirs(root / "include")
    raise ToolchainError(
        "no CUDA headers (cuda_runtime.h) beside an nvcc or among the pip wheels; without them NVRTC "
        f"compiles no kernel. {HOW_TO_GET}"
    )


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _examine(nvcc: Path, source: str) -> Toolchain:
    version = _version(nvcc, source)
    root = _root(nvcc)
    if source == WHEELS:
        _check_wheels(root)
    lib_dir = next((d for d in (root / "lib64", root / "lib") if d.is_dir()), root / "lib64")
    return Toolchain(nvcc, version, root, root / "include", lib_dir, source)


def _ask(nvcc: Path, *args: str) -> str:
    out = subprocess.run([nvcc, *args], capture_output=True, text=True, errors="replace", timeout=60)
    return out.stdout + out.stderr


def _version(nvcc: Path, source: str) -> str:
    try:
        said = _ask(nvcc, "--version")
    except (OSError, subprocess.TimeoutExpired) as e:
        said = str(e)
    if m := re.search(r"\bV(\d+\.\d+\.\d+)", said):
        return m[1]
    raise ToolchainError(
        f"{nvcc} (found through {source}) does not run: {said.strip()[-300:] or 'it printed nothing'}; "
        "without it nothing is compiled. Repair or remove it, or point CUDA_HOME at another toolkit"
    )


def _root(nvcc: Path) -> Path:
    """nvcc's own idea of its root: the file found may be a wrapper script that stands elsewhere."""
    try:
        if m := re.search(r"^#\$ TOP=(.+)$", _ask(nvcc, "--dryrun", "-x", "cu", "-c", os.devnull), re.M):
            return Path(m[1].strip()).resolve()
    except (OSError, subprocess.TimeoutExpired):
        pass
    return nvcc.resolve().parent.parent


def _check_wheels(root: Path) -> None:
    for part in PARTS:
        if not any((root / p).exists() for p in part.paths):
            raise ToolchainError(
                f"the wheel {part.wheel} is missing beside nvcc in {root}; without it: {part.disables}. "
                "pip install 'kgen[toolchain]'"
            )
    # pip mixes releases freely, and an older ptxas refuses a newer front end's PTX (Unsupported .version).
    releases = {}
    for wheel in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt"):
        try:
            releases[wheel] = ".".join(importlib.metadata.version(wheel).split(".")[:2])
        except importlib.metadata.PackageNotFoundError:
            continue
    if len(set(releases.values())) > 1:
        which = ", ".join(f"{w} {v}" for w, v in releases.items())
        raise ToolchainError(
            f"the compiler's wheels are of different CUDA releases ({which}); without a matching set nothing "
            "compiles. pip install --upgrade 'kgen[toolchain]'"
        )
