"""PTX of the kernels that the machine's tests run, each compiled once per session."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from kgen.toolchain import find_toolchain

HERE = Path(__file__).parent
REPO = HERE.parents[2]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """fn(source, arch) -> PTX text; a relative source stands beside the tests."""
    where = tmp_path_factory.mktemp("ptx")

    @lru_cache
    def ptx(source: str, arch: str = "90a") -> str:
        path = HERE / source
        out = where / f"{path.stem}_{arch}.ptx"
        code = f"arch=compute_{arch},code=compute_{arch}"
        command = [find_toolchain().nvcc, "-ptx", "-O3", "-std=c++17", "-lineinfo", "-gencode", code, path, "-o", out]
        subprocess.run([str(c) for c in command], check=True)
        return out.read_text()

    return ptx


def only(ptx: str, kernel: str) -> str:
    """The PTX without its other kernels: large files are parsed at every launch."""
    pieces = re.split(r"(?=^\.(?:visible|weak) \.entry )", ptx, flags=re.M)
    # What follows the last kernel's end are the names of source files and debug sections.
    end = re.search(r"^\s*\.file", pieces[-1], re.M).start()
    tail, pieces[-1] = pieces[-1][end:], pieces[-1][:end]
    return pieces[0] + "".join(p for p in pieces[1:] if f".entry {kernel}(" in p) + tail
