"""The C and Python sides of a project with an epilogue: it compiles cleanly, and its own test computes what it says."""

import importlib.util
import subprocess

import numpy as np
import pytest
from chains import ARCHS, LONG, OWN, project

from kgen.build import build_executable, build_library
from kgen.emulation_epilogue import apply, draw
from kgen.toolchain import find_toolchain

MORE = "tile.n=128"


# All of it together takes more registers than a thread has, which a build refuses.
BUILDABLE = LONG.replace(f"{OWN}, ", "")


@pytest.fixture(params=ARCHS)
def written_project(request, tmp_path):
    plan, files = project(request.param, LONG, MORE)
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    return plan, files, tmp_path


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("ops", "more"), [(BUILDABLE, MORE), (f"[{OWN}]", "dtype.output=fp32")], ids=["chain", "own"]
)
def test_it_compiles_without_a_warning(arch, ops, more, tmp_path):
    plan, files = project(arch, ops, more)
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    build_library(tmp_path, plan.arch)
    build_executable(tmp_path, plan.arch)


def test_no_line_is_too_long(written_project):
    _, files, _ = written_project
    code = {path: text for path, text in files.items() if path.endswith((".cu", ".h", ".py"))}
    assert [f"{p}: {line}" for p, text in code.items() for line in text.splitlines() if len(line) > 120] == []


class OnHost:
    """Stands in for a matrix on the card."""

    def __init__(self, values, stride):
        self.stride, self.pointer = stride, 0


def test_the_projects_own_test_models_the_same_epilogue(written_project, monkeypatch):
    plan, _, directory = written_project
    pytest.importorskip("cuda.bindings")
    spec = importlib.util.spec_from_file_location("project_test", directory / "test_epi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DeviceMatrix", OnHost)
    extras = module.Extras(5, 8, np.random.default_rng(3))
    drawn = draw(plan.finish, 5, 8, np.random.default_rng(3))
    for name, values in drawn.items():
        assert extras.host[name].reshape(values.shape).tolist() == values.tolist(), name
    for real in (np.float64, np.float32):
        x = np.random.default_rng(4).standard_normal((5, 8)).astype(real)
        got = extras.finish(x)
        assert got.dtype == real and got.tolist() == apply(plan.finish, x, drawn).tolist()
    members = {name for name, _ in module.Args._fields_} - set("abdmnk") - {"lda", "ldb", "ldd"}
    assert members - {a.name for a in plan.finish.arguments if a.written} <= set(extras.members)


def test_the_struct_is_laid_out_as_python_has_it(written_project):
    """C's offsets against those of ctypes, by the host compiler."""
    plan, _, directory = written_project
    names = [name for a in plan.finish.arguments for name in (a.name, a.stride) if name]
    lines = "".join(f'  printf("%d\\n", (int)offsetof(struct epi_args, {name}));\n' for name in names)
    main = f'#include <stddef.h>\n#include <stdio.h>\n#include "epi.h"\nint main(void) {{\n{lines}  return 0;\n}}\n'
    (directory / "offsets.c").write_text(main)
    include = find_toolchain().include_dir
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-isystem{include}", "offsets.c", "-o", "offsets"]
    subprocess.run(command, cwd=directory, check=True)
    offsets = subprocess.run(["./offsets"], cwd=directory, check=True, capture_output=True, text=True).stdout.split()
    pytest.importorskip("cuda.bindings")
    spec = importlib.util.spec_from_file_location("project_test", directory / "test_epi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert [int(o) for o in offsets] == [getattr(module.Args, name).offset for name in names]
