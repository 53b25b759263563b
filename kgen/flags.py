"""The flags of every nvcc compilation: of kgen's own builds, and of those a generated project tells of."""

from __future__ import annotations

from kgen.arch import Arch

NVCC_FLAGS = ("-std=c++17", "-O3")
# -warn-* turn a spill into a warning, which the strict flags turn into an error.
PTXAS_FLAGS = ("-Xptxas", "-v,-warn-spills,-warn-lmem-usage")
STRICT_FLAGS = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")


def nvcc_flags(arch: Arch, *, strict: bool = True) -> tuple[str, ...]:
    """The flags of every nvcc compilation for `arch`; `strict` makes each warning an error."""
    return (*NVCC_FLAGS, "-gencode", arch.gencode, *PTXAS_FLAGS, *(STRICT_FLAGS if strict else ()))
