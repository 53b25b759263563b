"""A generated .cu to PTX through NVRTC, for machines with no nvcc (and no driver, which it does not need).

NVRTC takes device code only: a generated file keeps its launcher, its own header and host includes between
`#ifndef __CUDACC_RTC__` and `#endif`. Host headers that carry device types are stood in for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgen.arch import Arch
from kgen.errors import BuildError, ToolchainError
from kgen.ptxas import parse
from kgen.toolchain import device_header_dirs

_TYPES = "\n".join(
    f"typedef {c} int{bits}_t;\ntypedef unsigned {c} uint{bits}_t;"
    for c, bits in (("short", 16), ("int", 32), ("long", 64))
)
_NAMES = ("size_t", "intptr_t", "uintptr_t", *(f"{u}int{b}_t" for u in ("", "u") for b in (8, 16, 32, 64)))

# NVRTC has no host headers, and <cuda.h> declares host functions, which it refuses.
STAND_INS: dict[str, str] = {
    "stddef.h": "#pragma once\ntypedef decltype(sizeof(0)) size_t;\n",
    "stdint.h": "#pragma once\ntypedef signed char int8_t;\ntypedef unsigned char uint8_t;\n"
    f"{_TYPES}\ntypedef long intptr_t;\ntypedef unsigned long uintptr_t;\n",
    "cuda.h": """#pragma once
#include <stdint.h>
#if __CUDACC_VER_MAJOR__ >= 13
#define KGEN_TENSOR_MAP_ALIGN 128
#else
#define KGEN_TENSOR_MAP_ALIGN 64
#endif
typedef struct CUtensorMap_st {
    alignas(KGEN_TENSOR_MAP_ALIGN) unsigned long long opaque[16];
} CUtensorMap;
""",
}
STAND_INS["cstddef"] = "#pragma once\n#include <stddef.h>\nnamespace std { using ::size_t; }\n"
STAND_INS["cstdint"] = "#pragma once\n#include <stddef.h>\n#include <stdint.h>\nnamespace std {\n" + (
    "".join(f"using ::{n};\n" for n in _NAMES) + "}\n"
)


def nvrtc_version() -> str | None:
    """NVRTC's version, e.g. "13.0", or None where there is none. Never raises."""
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except Exception:  # the bindings raise errors of their own kind when the library is not found
        return None
    return f"{major}.{minor}" if status == nvrtc.nvrtcResult.NVRTC_SUCCESS else None


def compile_ptx_nvrtc(
    source_text: str, arch: Arch, include_dirs: Sequence[Path] | None = None, *, name: str = "kernel.cu"
) -> str:
    """PTX of `source_text` for `arch`. `include_dirs` defaults to the CUDA headers of this machine.

    Raises ToolchainError without NVRTC or headers, BuildError with the compiler's lines on error or warning.
    """
    if nvrtc_version() is None:
        raise ToolchainError(
            "NVRTC was not found; without it and without nvcc no kernel becomes PTX. "
            "pip install 'kgen[toolchain]'"
        )
    from cuda.bindings import nvrtc

    dirs = device_header_dirs() if include_dirs is None else include_dirs
    options = [
        f"--gpu-architecture={arch.name.replace('sm_', 'compute_')}",
        "--std=c++17",
        # The launcher, which NVRTC does not see, is what refers to the kernel and to some constants.
        "--diag-suppress=177",
        *(f"--include-path={d}" for d in dirs),
    ]
    status, program = nvrtc.nvrtcCreateProgram(
        source_text.encode(),
        name.encode(),
        len(STAND_INS),
        [text.encode() for text in STAND_INS.values()],
        [header.encode() for header in STAND_INS],
    )
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(f"{name}: NVRTC refused the source ({status.name})")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        lines = [note.line for note in parse(log)[1]]
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS or lines:
            raise BuildError(f"{name}: NVRTC: " + ("\n".join(lines[:5]) or log.strip() or status.name))
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size_of, read, program) -> str:
    _, size = size_of(program)
    buffer = b" " * size  # the bindings fill the bytes object in place
    read(program, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace")
