"""Warp-wide exchanges whose mask names lanes that never come."""

import numpy as np
import pytest

from kgen.emulator.launch import launch
from kgen.emulator.monitor import CheckFailure
from kgen.emulator.schedule import DeadlockError

SOURCE = """
extern "C" __global__ void branch(int *out) {
  int x = threadIdx.x;
  if (x < 16) x = __shfl_sync(0xffffffff, x, 3);
  out[threadIdx.x] = x;
}
extern "C" __global__ void own(int *out) {
  int x = threadIdx.x;
  if (x < 16) x = __shfl_sync(0xffff, x, 3);
  out[threadIdx.x] = x;
}
extern "C" __global__ void forever(int *out) {
  int x = threadIdx.x;
  if (x < 16) x = __shfl_sync(0xffffffff, x, 3);
  else while (*(volatile int *)out == 0) {}
  out[threadIdx.x] = x;
}
"""


@pytest.fixture(scope="module")
def ptx(compiled, tmp_path_factory):
    source = tmp_path_factory.mktemp("masks") / "masks.cu"
    source.write_text(SOURCE)
    return compiled(str(source), "100a")


@pytest.mark.parametrize("seed", range(3))
def test_lanes_that_exit_without_coming(ptx, seed):
    out = np.zeros(32, np.int32)
    result = launch(ptx, "branch", 1, 32, [out], seed=seed)
    assert len(result.warnings) == 1 and "warp-mask-exited" in result.warnings[0]
    assert "0xffff0000" in result.warnings[0] and "shfl" in result.warnings[0]
    with pytest.raises(CheckFailure, match="warp-mask-exited"):
        launch(ptx, "branch", 1, 32, [out], seed=seed, strict=["warp-mask-exited"])


def test_the_right_mask_is_silent(ptx):
    out = np.zeros(32, np.int32)
    assert not launch(ptx, "own", 1, 32, [out]).warnings
    assert (out == np.where(np.arange(32) < 16, 3, np.arange(32))).all()


def test_lanes_that_never_come_back(ptx):
    with pytest.raises(DeadlockError, match="wait for lanes 0xffff0000 of their warp"):
        launch(ptx, "forever", 1, 32, [np.zeros(32, np.int32)])
