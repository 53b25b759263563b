"""RUN.yaml: launching a foreign kernel from a file."""

import numpy as np
import pytest

from kgen.emulator.run_file import run_file
from kgen.errors import EmulatorError, UsageError

from .gemm import constant, golden

SOFTMAX = """
kernel: softmax
grid: 3
block: 32
smem: 400
buffers:
  x: {dtype: f32, shape: [3, 100], init: random}
  y: {dtype: f32, shape: [3, 100]}
args: [x, y, {s32: 100}]
expect: {y: "np.exp(x) / np.exp(x).sum(1, keepdims=True)"}
tolerance: 1.0e-5
"""


@pytest.fixture
def write(tmp_path):
    def make(text):
        path = tmp_path / "RUN.yaml"
        path.write_text(text)
        return path

    return make


def test_expectation_holds(compiled, write):
    outcome = run_file(compiled("ordinary.cu"), write(SOFTMAX))
    assert not outcome.failed and 0 < outcome.errors["y"] < 1e-5
    assert np.allclose(outcome.buffers["y"].sum(1), 1, atol=1e-5)


def test_expectation_fails(compiled, write):
    outcome = run_file(compiled("ordinary.cu"), write(SOFTMAX.replace("np.exp(x) /", "2 * np.exp(x) /")))
    assert outcome.failed == ["y"]


def test_tensor_maps(compiled, write):
    source = golden(4).read_text()
    text = f"""
grid: [2, 1]
block: 128
smem: {constant(source, "SMEM_BYTES")}
buffers:
  a: {{dtype: bf16, shape: [100, 136], init: random}}
  b: {{dtype: bf16, shape: [200, 136], init: random}}
  d: {{dtype: bf16, shape: [100, 200]}}
maps:
  map_a: {{buffer: a, box: [64, 64], swizzle: 128B}}
  map_b: {{buffer: b, box: [256, 64], swizzle: 128B}}
  map_d: {{buffer: d, box: [{constant(source, "STORE_ROWS")}, 64], swizzle: 128B}}
args: [map_a, map_b, map_d, d, {{s64: 200}}, {{s32: 100}}, {{s32: 200}}, {{s32: 136}}]
expect: {{d: "a.astype('f8') @ b.astype('f8').T"}}
tolerance: 0.02
"""
    assert not run_file(compiled(str(golden(4))), write(text)).failed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid: 3", "gird: 3", "unknown gird"),
        ("[x, y,", "[x, z,", "z is neither a buffer nor a map"),
        ("dtype: f32, shape: [3, 100], init: random", "dtype: f31, shape: [3, 100]", "dtype is one of"),
        ("init: random", "init: nowhere.npy", "or a file"),
    ],
)
def test_malformed_files_are_refused(compiled, write, old, new, message):
    with pytest.raises(UsageError, match=message):
        run_file(compiled("ordinary.cu"), write(SOFTMAX.replace(old, new)))


def test_too_small_a_buffer_is_named(compiled, write):
    with pytest.raises(EmulatorError, match="past the end of y"):
        run_file(
            compiled("ordinary.cu"),
            write(SOFTMAX.replace("y: {dtype: f32, shape: [3, 100]", "y: {dtype: f32, shape: [3, 99]")),
        )
