"""What is installed holds the templates and specs of the checkout, and works without it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgen.presets import spec_root

CHECKOUT = spec_root().parent


def files_below(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_an_installed_package_scaffolds_without_the_checkout(tmp_path):
    pytest.importorskip("setuptools")
    source, built = tmp_path / "source", tmp_path / "built"
    ignore = shutil.ignore_patterns("__pycache__", "build")
    for name in ("kgen", "templates", "specs"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(CHECKOUT / name, source)
    stale = built / "kgen" / "_data" / "templates" / "gone.cu"
    stale.parent.mkdir(parents=True)
    stale.write_text("left by an earlier build")
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(built)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    for name in ("templates", "specs"):
        assert files_below(built / "kgen" / "_data" / name) == files_below(CHECKOUT / name)
    shutil.rmtree(source)

    environment = {**os.environ, "PYTHONPATH": str(built), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def kgen(*arguments):
        command = [sys.executable, "-m", "kgen", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    made = kgen("new", "gemm", "--step", "9", "-o", "project")
    assert made.returncode == 0, made.stderr
    made_files = files_below(tmp_path / "project")
    made_files.pop(".kgen.json")
    golden = CHECKOUT / "generated" / "sm_100a" / "gemm_step9"  # the newest, where no card says otherwise
    assert made_files == {p.name: p.read_bytes() for p in golden.iterdir() if p.is_file()}
    page = [sys.executable, "-m", "kgen.static"]
    static = subprocess.run(page, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
    assert static.stdout == (CHECKOUT / "docs" / "performance-sm100a.md").read_text(encoding="utf-8"), static.stderr
    goldens = kgen("render", "--all")
    assert goldens.returncode == 2 and "this kgen is installed" in goldens.stderr
