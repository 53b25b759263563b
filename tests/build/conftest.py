import shutil
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent / "kernels"


@pytest.fixture
def kernels(tmp_path):
    """A copy of the experiments' sources, so that build/ lands in a scratch directory."""
    return Path(shutil.copytree(KERNELS, tmp_path / "kernels", ignore=shutil.ignore_patterns("build")))


@pytest.fixture
def fake_nvcc(tmp_path):
    """Makes `<name>/bin/nvcc`, a script that only knows its version; returns its root."""

    def make(name: str, version: str = "13.0.88", says: str | None = None) -> Path:
        nvcc = tmp_path / name / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        text = says if says is not None else f"Cuda compilation tools, release {version[:4]}, V{version}"
        nvcc.write_text(f'#!/bin/sh\necho "{text}"\n')
        nvcc.chmod(0o755)
        return tmp_path / name

    return make
