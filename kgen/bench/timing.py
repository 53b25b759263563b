"""The timing method, over abstract contestants and an abstract clock: testable without a card.

What makes a comparison fair on a power-limited card:
- Only launches of one interleaved run are compared, because the clock a kernel gets depends on what ran in
  the seconds before. Each round launches every contestant once, in an order shuffled anew (from a fixed
  seed), so that no contestant always follows the same neighbour.
- The run starts when the card has been busy for a while and successive windows agree.
- Each launch takes the next operand set of a rotation larger than the L2 cache.
- Each measurement is one event pair around one launch, or around a short batch where a launch is so short
  that the events themselves would show.
- The device must never wait for the host. Where queuing a round takes the host longer than the device needs
  to run it, a filler is queued first, behind which the round gathers.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kgen.bench.spread import median


class Contestant(Protocol):
    """Something that can queue one launch on an operand set (counted from 0)."""

    label: str

    def launch(self, operand_set: int) -> None:
        """Queue it; returns without waiting."""


class Clock(Protocol):
    """The device's time. Tokens from `mark` stay valid until `reset`."""

    def mark(self) -> int:
        """Queue a time stamp; returns its token."""

    def seconds_between(self, start: int, end: int) -> float:
        """Device time between two stamps; only after `synchronize`."""

    def synchronize(self) -> None:
        """Wait for everything queued."""

    def reset(self) -> None:
        """Forget all stamps."""

    def host_seconds(self) -> float:
        """Host time, from an arbitrary start."""

    def fill(self, seconds: float) -> None:
        """Queue device work that lasts about `seconds` and concerns nobody."""


@dataclass(frozen=True)
class Policy:
    """How long, how often. The defaults suit kernels from microseconds to tens of milliseconds."""

    rounds: int = 100  # timed launches (or batches) of each contestant
    budget_s: float = 20.0  # the timed part of one shape is cut to this, but not below `fewest_rounds`
    fewest_rounds: int = 10
    least_s: float = 0.2  # short rounds are repeated up to ten times as often, to fill this
    settle_least_s: float = 0.5
    settle_most_s: float = 6.0
    settle_window_s: float = 0.25
    settle_agreement: float = 0.01  # two successive pairs of windows differ by less
    batch_target_s: float = 40e-6  # launches shorter than this are timed several to an event pair
    largest_batch: int = 16
    tuning_rounds: int = 2  # rounds over cuBLASLt's algorithms ...
    tuning_launches: int = 5  # ... of this many launches each
    seed: int = 0


@dataclass(frozen=True)
class Pace:
    """What the first look at a round says about how to run it."""

    round_s: float  # device time of one round
    batch: int  # launches per event pair
    filler_s: float  # device work to queue before each round; 0 where the host is fast enough


@dataclass(frozen=True)
class Settling:
    """How the warm-up ended. `stable` is False where it ran into its time limit."""

    seconds: float
    stable: bool
    windows: int


class Rotation:
    """Deals operand sets 0, 1, ... sets - 1, 0, ... across everything that is launched."""

    def __init__(self, sets: int):
        self.sets = sets
        self._next = itertools.cycle(range(sets))

    def __next__(self) -> int:
        return next(self._next)


def interleave(
    contestants: Sequence[Contestant],
    clock: Clock,
    rotation: Rotation,
    rounds: int,
    batch: int = 1,
    filler_s: float = 0.0,
    seed: int = 0,
) -> dict[str, list[float]]:
    """Seconds per launch of each contestant, one value per round, in the order they ran."""
    order = list(contestants)
    shuffle = random.Random(seed).shuffle
    clock.reset()
    stamps: list[tuple[str, int, int]] = []
    for _ in range(rounds):
        shuffle(order)
        if filler_s:
            clock.fill(filler_s)
        for contestant in order:
            start = clock.mark()
            for _ in range(batch):
                contestant.launch(next(rotation))
            stamps.append((contestant.label, start, clock.mark()))
    clock.synchronize()
    seconds: dict[str, list[float]] = {contestant.label: [] for contestant in contestants}
    for label, start, end in stamps:
        seconds[label].append(clock.seconds_between(start, end) / batch)
    return seconds


def find_pace(contestants: Sequence[Contestant], clock: Clock, rotation: Rotation, policy: Policy) -> Pace:
    """Look at a few rounds of single launches: how long they take the device, and the host to queue."""
    interleave(contestants, clock, rotation, rounds=1)  # first launches load modules; they tell nothing
    clock.synchronize()
    begin = clock.host_seconds()
    for contestant in contestants:
        clock.mark()
        contestant.launch(next(rotation))
        clock.mark()
    host_s = clock.host_seconds() - begin
    clock.synchronize()
    # Behind a filler, so that the device times are not the host's.
    seconds = interleave(contestants, clock, rotation, rounds=3, filler_s=2 * host_s)
    each = [median(seconds[contestant.label]) for contestant in contestants]
    shortest = max(min(each), 1e-9)
    batch = min(policy.largest_batch, max(1, math.ceil(policy.batch_target_s / shortest)))
    round_s = max(sum(each) * batch, 1e-9)
    host_s *= batch
    # Half as long again: the host is an ordinary computer and stumbles.
    return Pace(round_s, batch, 1.5 * host_s if round_s < 1.5 * host_s else 0.0)


def settle(
    contestants: Sequence[Contestant], clock: Clock, rotation: Rotation, policy: Policy, pace: Pace
) -> Settling:
    """Run until the clocks have settled: three windows in a row whose medians agree, and a least time."""
    rounds = max(3, math.ceil(policy.settle_window_s / (pace.round_s + pace.filler_s)))
    begin, windows, agreeing, last = clock.host_seconds(), 0, 0, math.inf
    while True:
        seconds = interleave(
            contestants, clock, rotation, rounds, pace.batch, pace.filler_s, policy.seed + windows
        )
        now = sum(median(values) for values in seconds.values())
        agreeing = agreeing + 1 if abs(now - last) <= policy.settle_agreement * now else 0
        last, windows = now, windows + 1
        spent = clock.host_seconds() - begin
        if agreeing >= 2 and spent >= policy.settle_least_s:
            return Settling(spent, True, windows)
        if spent >= policy.settle_most_s:
            return Settling(spent, False, windows)


def timed_rounds(policy: Policy, pace: Pace) -> int:
    """How many rounds the time budget of one shape allows."""
    round_s = pace.round_s + pace.filler_s
    wanted = max(policy.rounds, min(math.ceil(policy.least_s / round_s), 10 * policy.rounds))
    allowed = int(policy.budget_s / round_s)
    return max(min(wanted, allowed), min(policy.fewest_rounds, policy.rounds), 1)


def fastest(
    contestants: Sequence[Contestant], clock: Clock, rotation: Rotation, policy: Policy, keep: int
) -> list[str]:
    """Labels of the `keep` fastest after a brief interleaved look, fastest first."""
    if len(contestants) <= keep:
        return [contestant.label for contestant in contestants]
    pace = find_pace(contestants, clock, rotation, policy)
    batch = max(policy.tuning_launches, pace.batch)
    filler_s = pace.filler_s * batch / pace.batch
    seconds = interleave(contestants, clock, rotation, policy.tuning_rounds, batch, filler_s, policy.seed)
    return sorted(seconds, key=lambda label: min(seconds[label]))[:keep]
