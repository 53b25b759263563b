"""The emulator proves what kgen plans, so it must not share code with it."""

import ast
from pathlib import Path

import pytest

import kgen.emulator

FILES = sorted(Path(kgen.emulator.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_imports_nothing_of_kgen_but_errors(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            own = name.startswith("kgen.emulator") or name in ("kgen.errors", "")
            assert own or name.split(".")[0] != "kgen", f"{path.name} imports {name}"
