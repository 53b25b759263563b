"""Whole pipelines over the units: silent and exact when right, caught by name when one step is missing."""

import pytest

from kgen.emulator.monitor import CheckFailure
from units.pipelines import BlackwellGemm, Deadlock, HopperGemm, MulticastRing

KERNELS = {
    "hopper": HopperGemm,
    "blackwell": lambda seed, skip=(): BlackwellGemm(1, seed, skip),
    "blackwell pair": lambda seed, skip=(): BlackwellGemm(2, seed, skip),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(20))
def test_right_ones_are_exact_and_silent(name, seed):
    g = KERNELS[name](seed)
    g.run()
    assert (g.result() == g.a @ g.b.T).all()
    assert not g.monitor.warnings
    assert all(not cta.hazards.in_flight for cta in g.units.ctas)


@pytest.mark.parametrize("seed", range(20))
def test_a_multicast_ring_is_right_and_silent(seed):
    ring = MulticastRing(seed)
    ring.run()
    assert ring.seen == [True] * 24 and not ring.monitor.warnings


OVERWRITE = {"smem-overwritten-in-flight", "smem-overwritten-unobserved", "smem-write-in-flight"}
EARLY_READ = {"smem-read-in-flight", "smem-read-unobserved", "uninitialised-shared"}
COMMON = {
    "empty wait": OVERWRITE | {"mbarrier-arrival-overflow"},  # expecting twice in one phase
    "full wait": EARLY_READ,
    "proxy fence": {"async-read-unfenced"},
    "store wait": {"smem-overwritten-in-flight", "smem-overwritten-unobserved"},
    "last wait": {"bulk-source-at-exit"},
    "expect": {"deadlock"},
    "start parity": {"deadlock"},
}
HOPPER = COMMON | {
    "wgmma fence": {"wgmma-missing-fence"},
    "wgmma wait": OVERWRITE | {"wgmma-registers-in-flight"},
}
BLACKWELL = COMMON | {
    "acc full wait": {"tmem-read-before-commit", "uninitialised-tmem"},
    "acc empty wait": {"tmem-missing-wait-ld", "tmem-overwritten-in-flight"},
    "wait ld": {"tmem-missing-wait-ld"},
    "commit": {"deadlock"},
    "dealloc": {"tmem-leak"},
    "fence after": {"tmem-missing-fence-after"},
}
MUTANTS = [
    (name, step, checks)
    for name in KERNELS
    for step, checks in (HOPPER if name == "hopper" else BLACKWELL).items()
]


def outcome(kernel):
    """Names of the checks that a run failed; there must be some."""
    try:
        kernel.run()
    except Deadlock:
        return {"deadlock"}
    except CheckFailure as failure:
        return {failure.check}
    assert kernel.monitor.warnings
    return {w.check for w in kernel.monitor.warnings}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name, step, checks", MUTANTS, ids=[f"{n}: {s}" for n, s, _ in MUTANTS])
def test_a_missing_step_is_caught_by_name(name, step, checks, seed):
    assert outcome(KERNELS[name](seed, (step,))) <= checks


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "step, checks",
    [
        ("partners", OVERWRITE | EARLY_READ),  # only the own consumer is waited for
        ("slices", EARLY_READ | OVERWRITE | {"deadlock"}),  # expects its own quarter only
    ],
)
def test_mistakes_of_multicast(step, checks, seed):
    assert outcome(MulticastRing(seed, (step,))) <= checks
