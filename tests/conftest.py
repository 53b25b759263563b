"""Tests import their shared modules (variants.py) by name."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def kgen_command():
    """Runs `kgen ARGUMENTS` in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "kgen", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)

    return run
