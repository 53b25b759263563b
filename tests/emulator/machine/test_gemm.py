"""The nine generated Hopper GEMMs against numpy: odd shapes, several schedules, persistent wrap-around."""

import pytest

from .gemm import Gemm, golden

SHAPES = {1: (60, 200, 64), 2: (33, 255, 136), 3: (130, 300, 72)}
ODD = [(100, 200, 136), (257, 129, 64), (1, 7, 8)]


@pytest.fixture
def build(compiled):
    def make(step, m, n, k):
        return Gemm(compiled(str(golden(step))), golden(step).read_text(), step, m, n, k)

    return make


@pytest.mark.parametrize("step", SHAPES)
def test_steps_without_tma(build, step):
    gemm = build(step, *SHAPES[step])
    gemm.run()
    gemm.check()


@pytest.mark.parametrize("shape", ODD, ids=str)
@pytest.mark.parametrize("step", range(4, 10))
def test_steps_with_tma(build, step, shape):
    for seed in range(2):
        gemm = build(step, *shape)
        gemm.run(seed=seed)
        gemm.check()


@pytest.mark.parametrize("step", [6, 7, 8, 9])
def test_persistent_kernels_wrap_around_two_sms(build, step):
    gemm = build(step, 300, 600, 200)
    gemm.run(sm_count=2, seed=5)
    gemm.check()


def test_same_seed_same_run(build):
    counts = []
    for seed in (3, 3, 4):
        gemm = build(8, 200, 300, 136)
        machine = gemm.run(seed=seed).machine
        counts.append((machine.instructions, machine.progress, machine.time))
    assert counts[0] == counts[1] != counts[2]
