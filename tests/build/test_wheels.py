"""With nothing but NVIDIA's wheels: runs where they are installed (`pip install 'kgen[toolchain]'`)."""

import subprocess

import pytest

from kgen.arch import SM_90A
from kgen.build import build_executable, build_library, compile_cubin, compile_ptx
from kgen.toolchain import find_toolchain, wheel_roots

pytestmark = pytest.mark.skipif(
    not any((root / "bin/nvcc").is_file() for root in wheel_roots()),
    reason="the toolchain wheels are not installed",
)


def test_every_product(kernels, monkeypatch):
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # a host compiler, and no nvcc
    assert find_toolchain().source == "pip wheels"
    for make in (compile_ptx, compile_cubin, build_library, build_executable):
        assert make(kernels / "project", SM_90A).artifact.stat().st_size > 0
    assert subprocess.run([kernels / "project/build/scale"]).returncode == 0
