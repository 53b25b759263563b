"""Cluster launch control: every tile exactly once, whatever try_cancel finds."""

import numpy as np
import pytest

from kgen.emulator.launch import launch


@pytest.mark.parametrize("mode", ["success", "failure", "random"])
def test_every_cluster_once(compiled, mode):
    workers = set()
    for seed in range(4):
        count, who = np.zeros(20, np.int32), np.zeros(20, np.int32)
        result = launch(compiled("clc.cu", "100a"), "steal", 20, 64, [count, who, 20], clc=mode, seed=seed)
        assert (count == 1).all() and not result.warnings
        workers.add(int((who > 0).sum()))
    assert max(workers) == (20 if mode == "failure" else max(workers))
    assert mode == "failure" or min(workers) < 20
