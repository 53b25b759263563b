"""A project's own program (main.cu) finds a wrong D and a wrong reduction: run as plain C++, with a launcher that
computes D itself, rightly or not."""

import re
import subprocess
from pathlib import Path

import pytest
from chains import project

from kgen.toolchain import find_toolchain

OPS = "[{op: bias, type: fp16}, gelu_tanh, row_sum, column_sum, row_max_abs, column_max_abs]"
PAIRS = "[swiglu, row_sum, column_sum, row_max_abs, column_max_abs]"
# The launcher: the program's own functions do what the kernel would, then `WRONG` spoils something.
LAUNCHER = """
extern "C" cudaError_t epi_launch(const epi_args *args, cudaStream_t) {
  const epi_args &g = *args;
  for (int64_t row = 0; row < g.m; ++row)
    for (int64_t column = 0; column < g.%(width)s; ++column) {
      double unused;
      float x, y = 0;
      product(g, row, %(first)s, unused, x);
      if (%(pairs)d) product(g, row, %(first)s + 1, unused, y);
      x = finish(x, %(second)s row, column, g);
      static_cast<Output *>(g.d)[row * g.ldd + column] = Output(x);
      g.row_sum[row] += x, g.column_sum[column] += x;
      g.row_max_abs[row] = fmaxf(g.row_max_abs[row], fabsf(x));
      g.column_max_abs[column] = fmaxf(g.column_max_abs[column], fabsf(x));
    }
  WRONG;
  return cudaSuccess;
}
"""
SPOILT = {
    "": None,
    "static_cast<Output *>(g.d)[3] = Output(9.0f)": r"error .*: WRONG",
    "g.row_sum[2] += 0.5f": "row_sum: .* WRONG",
    "g.row_sum[g.m - 1] = 0": "row_sum: .* WRONG",
    "g.column_sum[0] *= 1.5f": "column_sum: .* WRONG",
    "g.row_max_abs[1] *= 1.1f": "row_max_abs: .* WRONG",
    "g.column_max_abs[4] = NAN": "column_max_abs: .* WRONG",
}


@pytest.fixture(scope="module", params=["columns", "pairs"])
def program(request, tmp_path_factory):
    """Compiles main.cu for the host with a launcher; `build(wrong)` gives what running it says."""
    paired = request.param == "pairs"
    directory = tmp_path_factory.mktemp("program")
    _, files = project("sm_90a", PAIRS if paired else OPS, "tile.n=128")
    for path, text in files.items():
        (directory / path).write_text(text)
    main = re.sub(r"<<<[^>]*>>>", "", files["main.cu"])
    launcher = LAUNCHER % {
        "width": "n / 2" if paired else "n",
        "first": "2 * column" if paired else "column",
        "second": "y," if paired else "",
        "pairs": paired,
    }
    at = main.index("int main(")
    main = main[:at] + launcher + main[at:]
    card = Path(__file__).with_name("on_host.h")
    main = main.replace("#include <signal.h>", f'#include "{card}"\n#include <signal.h>')
    main = main.replace("RUNS = 50", "RUNS = 1").replace("WARM_UP = 20", "WARM_UP = 0")
    include = find_toolchain().include_dir

    def run(wrong):
        source = directory / "main.cpp"
        source.write_text(main.replace("WRONG;", wrong + ";", 1))
        command = ["g++", "-std=c++17", "-O1", "-w", f"-isystem{include}", source.name, "-o", "program"]
        subprocess.run(command, cwd=directory, check=True)
        return subprocess.run(["./program", "20", "24", "40"], cwd=directory, capture_output=True, text=True)

    return run


@pytest.mark.parametrize("wrong", SPOILT)
def test_the_program_finds_what_is_wrong(program, wrong):
    done = program(wrong)
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[1:5]] == ["row_sum", "column_sum", "row_max_abs", "column_max_abs"]
    if not wrong:
        assert done.returncode == 0 and [line.endswith(": right") for line in lines[:5]] == [True] * 5, done.stdout
    else:
        assert done.returncode == 1, done.stdout
        (bad,) = [line for line in lines if line.endswith("WRONG")]
        assert re.search(SPOILT[wrong], bad)
