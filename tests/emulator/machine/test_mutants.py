"""Generated kernels, each broken in one way: the emulator names the mistake, whatever the schedule."""

import re

import pytest

from kgen.emulator.monitor import CheckFailure
from kgen.emulator.schedule import DeadlockError
from kgen.errors import EmulatorError

from .gemm import Gemm, golden

WAIT = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 (\w+), \[[^]]+\], %r\d+;"


def drop(pattern):
    """Without any instruction that matches."""
    return lambda text: replaced(text, pattern, "")


def replaced(text, pattern, new, which=slice(None)):
    """The chosen occurrences replaced; it is an error if there are none."""
    places = list(re.finditer(pattern, text))[which]
    assert places, pattern
    for match in reversed(places):
        text = text[: match.start()] + match.expand(new) + text[match.end() :]
    return text


def swap(pattern, new, which=slice(None)):
    return lambda text: replaced(text, pattern, new, which)


NO_WAIT = r"setp.eq.u32 \1, 0, 0;"
LOAD = r"(mbarrier::complete_tx::bytes) \[(%r\d+)\]"
MUTANTS = {
    # name: (step, edit, checks of which one must be named)
    "no proxy fence before wgmma reads stores": (1, drop(r"fence\.proxy\.async\S*;"), ["async-read-unfenced"]),
    "no proxy fence before a tensor store": (7, drop(r"fence\.proxy\.async\S*;"), ["async-read-unfenced"]),
    "proxy fence after the barrier": (
        7, swap(r"(fence\.proxy\.async\S*;)([^;]*)(bar\.warp\.sync\s+-1;)", r"\3\2"), ["async-read-unfenced"],
    ),
    "consumers do not wait for data": (
        7, swap(WAIT, NO_WAIT, slice(7, None)), ["smem-read-in-flight", "smem-read-unobserved", "uninitialised-shared"],
    ),
    "the producer does not wait for free stages": (
        7, swap(WAIT, NO_WAIT, slice(0, 7)),
        ["smem-overwritten-in-flight", "smem-overwritten-unobserved", "smem-write-in-flight",
         "mbarrier-arrival-overflow"],
    ),
    "stages are released while wgmma reads them": (
        7, swap(r"wgmma\.wait_group\.sync\.aligned 1;", "wgmma.wait_group.sync.aligned 7;"),
        ["smem-overwritten-in-flight", "smem-overwritten-unobserved"],
    ),
    "results are read before wait_group": (
        7, drop(r"wgmma\.wait_group\.sync\.aligned 0;"), ["wgmma-registers-in-flight"],
    ),
    "no wgmma.fence": (5, drop(r"wgmma\.fence\S*;"), ["wgmma-missing-fence"]),
    "staging is overwritten while a store reads it": (
        7, drop(r"cp\.async\.bulk\.wait_group\.read 1;"), ["smem-overwritten-in-flight", "smem-overwritten-unobserved"],
    ),
    "the last store is not waited for": (
        7, drop(r"cp\.async\.bulk\.wait_group\.read 0;"), ["bulk-source-at-exit", "exit-while-in-flight"],
    ),
    "stores are never committed": (
        7, drop(r"cp\.async\.bulk\.commit_group;"),
        ["smem-overwritten-in-flight", "smem-overwritten-unobserved", "bulk-source-at-exit"],
    ),
    "more bytes expected than arrive": (7, swap(r"(mov\.u32\s+%r\d+), 40960;", r"\1, 40976;"), ["deadlock"]),
    "fewer bytes expected than arrive": (7, swap(r"(mov\.u32\s+%r\d+), 40960;", r"\1, 40944;"), ["deadlock"]),
    "nobody expects the bytes": (
        7, swap(r"mbarrier\.arrive\.expect_tx(\S*) _, \[(%r\d+)\], %r\d+;", r"mbarrier.arrive\1 _, [\2];"),
        ["deadlock", "smem-read-in-flight", "smem-read-unobserved", "uninitialised-shared"],
    ),
    "consumers do not release stages": (7, drop(r"mbarrier\.arrive\.shared::cta\.b64 _, \[%r\d+\];"), ["deadlock"]),
    "the producer starts with the wrong parity": (
        7, swap(r"(mbarrier\.try_wait\S+ \w+, \[[^]]+\]), %r\d+;", r"\1, 0;", slice(0, 7)), ["deadlock"],
    ),
    "a stage is not aligned to its swizzle": (7, swap(LOAD, r"\1 [\2+128]", slice(0, 1)), ["swizzle-phase"]),
    "a stage is not aligned at all": (7, swap(LOAD, r"\1 [\2+16]", slice(0, 1)), ["tma-alignment"]),
    "barriers are not initialised": (7, drop(r"mbarrier\.init\S+ \[%r\d+\], %r\d+;"), ["mbarrier-uninitialised"]),
    "a barrier is initialised twice": (
        7, swap(r"(mbarrier\.init\S+ \[%r\d+\], %r\d+;)", r"\1 \1", slice(0, 1)), ["mbarrier-init-live"],
    ),
    "a CTA exits while its partner still signals it": (
        8, swap(r"barrier\.cluster\.(arrive|wait)\S*;", "", slice(-2, None)),
        ["mbarrier-exited-cta", "exit-while-in-flight", "exited", "exit-unobserved"],
    ),
    "the multicast mask names a CTA that is not there": (
        8, swap(r"(mov\.u16\s+%rs\d+), 3;", r"\1, 7;"), ["multicast-cta"],
    ),
    "a descriptor has a reserved bit": (
        7, swap(r"(or\.b64\s+%rd\d+, %rd\d+), 4611686293305294848;", r"\1, 4611756662049472512;"),
        ["bits 48:46 must be"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_by_name(compiled, name):
    step, edit, checks = MUTANTS[name]
    text = edit(compiled(str(golden(step))))
    for seed in range(2):
        gemm = Gemm(text, golden(step).read_text(), step, *((60, 200, 64) if step == 1 else (200, 500, 456)))
        with pytest.raises(EmulatorError) as caught:
            gemm.run(seed=seed, sm_count=2, strict=["swizzle-phase"])
            gemm.check()
        message = str(caught.value)
        if isinstance(caught.value, CheckFailure):
            assert caught.value.check in checks, message
        elif isinstance(caught.value, DeadlockError):
            assert "deadlock" in checks, message
            assert "waits for mbarrier" in message and "arrived in" in message
        else:
            assert any(c in message for c in checks), message
        assert "PTX line" in message and f"gemm_step{step}.cu:" in message


@pytest.mark.parametrize("step", [4, 8])
def test_too_small_an_output_is_named(compiled, step):
    gemm = Gemm(compiled(str(golden(step))), golden(step).read_text(), step, 100, 200, 64)
    gemm.d = gemm.d[:99].copy()
    with pytest.raises(EmulatorError, match=r"past the end of d|over the end of d"):
        gemm.run()


def test_a_check_can_be_turned_to_a_warning(compiled):
    step, edit, (check,) = MUTANTS["no proxy fence before a tensor store"]
    text = edit(compiled(str(golden(step))))
    gemm = Gemm(text, golden(step).read_text(), step, 100, 200, 64)
    result = gemm.run(warn=[check])
    gemm.check()
    assert result.warnings and all(w.startswith(check) for w in result.warnings)
