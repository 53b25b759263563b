"""Where cuBLAS and cuBLASLt are: the toolkit, the system, NVIDIA's wheels, or those that torch brings."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgen.toolchain import wheel_roots


@dataclass(frozen=True)
class Library:
    """A shared library to give to `ctypes.CDLL`; `path` is a bare name where the system's loader finds it."""

    path: str
    source: str  # CUDA_HOME, system, pip wheels or torch


def find_library(stem: str) -> Library | None:
    """The best `lib<stem>.so*` (stem "cublas" or "cublasLt"), newest first in a place. Loads nothing."""
    for folder, source in _places():
        # A bare .so may be a linker script or a stub, so the versioned name goes first.
        for path in sorted(folder.glob(f"lib{stem}.so.*"), key=lambda p: (-_major(p), len(p.name))):
            return Library(str(path), source)
        if (plain := folder / f"lib{stem}.so").is_file():
            return Library(str(plain), source)
    if name := ctypes.util.find_library(stem):
        return Library(name, "system")
    return None


def _major(path: Path) -> int:
    number = path.name.split(".so.")[-1].split(".")[0]
    return int(number) if number.isdigit() else 0


def _places() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("CUDA_HOME"):
        yield from ((Path(home) / d, "CUDA_HOME") for d in ("lib64", "lib"))
    for root in wheel_roots():
        yield root / "lib", "pip wheels"
    for package, below, source in (("nvidia", "cublas/lib", "pip wheels"), ("torch", "lib", "torch")):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(place) / below, source
