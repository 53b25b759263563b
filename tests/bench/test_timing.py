"""The timing method on a simulated card."""

from __future__ import annotations

import itertools

import pytest

from kgen.bench.spread import Spread, quantile
from kgen.bench.timing import (
    Pace,
    Policy,
    Rotation,
    fastest,
    find_pace,
    interleave,
    settle,
    timed_rounds,
)


class Simulation:
    """A card and its host. A launch takes device time that depends on how warm the card is, and host time to
    queue; the device begins it when it is queued and the device is free."""

    def __init__(self, host_cost_s: float = 1e-6, warm_after_s: float = 0.0, cold_factor: float = 1.0):
        self.host, self.device = 0.0, 0.0
        self.busy = 0.0
        self.host_cost_s, self.warm_after_s, self.cold_factor = host_cost_s, warm_after_s, cold_factor
        self.stamps: list[float] = []
        self.log: list[tuple[str, int]] = []
        self.filled = 0.0

    def run(self, seconds: float) -> None:
        if self.busy < self.warm_after_s:
            seconds *= 1 + (self.cold_factor - 1) * (1 - self.busy / self.warm_after_s)
        self.host += self.host_cost_s
        self.device = max(self.device, self.host) + seconds
        self.busy += seconds

    def mark(self) -> int:
        self.stamps.append(max(self.device, self.host))
        return len(self.stamps) - 1

    def seconds_between(self, start: int, end: int) -> float:
        return self.stamps[end] - self.stamps[start]

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def reset(self) -> None:
        self.stamps.clear()

    def host_seconds(self) -> float:
        return self.host

    def fill(self, seconds: float) -> None:
        self.filled += seconds
        self.device = max(self.device, self.host) + seconds
        self.busy += seconds


class Fake:
    def __init__(self, label: str, card: Simulation, seconds):
        self.label, self._card = label, card
        self._seconds = seconds if hasattr(seconds, "__next__") else itertools.repeat(seconds)

    def launch(self, operand_set: int) -> None:
        self._card.log.append((self.label, operand_set))
        self._card.run(next(self._seconds))


def test_quantiles_interpolate():
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([1.0], 0.9) == 1.0
    assert quantile([0.0, 10.0], 0.1) == pytest.approx(1.0)
    with pytest.raises(ValueError):
        quantile([], 0.5)


def test_spread_tells_the_drift_between_halves():
    spread = Spread.of([1.0] * 10 + [1.1] * 10)
    assert spread.samples == 20
    assert spread.drift == pytest.approx(0.1 / spread.median_s)
    assert Spread.of([2.0]).drift == 0.0


def test_each_round_has_everyone_once_in_changing_order():
    card = Simulation()
    fakes = [Fake(label, card, 1e-3) for label in "abcd"]
    seconds = interleave(fakes, card, Rotation(3), rounds=40)
    rounds = [tuple(label for label, _ in card.log[i : i + 4]) for i in range(0, 160, 4)]
    assert all(sorted(r) == list("abcd") for r in rounds)
    assert len(set(rounds)) > 10
    assert {label: len(values) for label, values in seconds.items()} == dict.fromkeys("abcd", 40)


def test_the_order_is_the_same_every_time():
    logs = []
    for _ in range(2):
        card = Simulation()
        interleave([Fake(label, card, 1e-3) for label in "abc"], card, Rotation(2), rounds=9, seed=5)
        logs.append(card.log)
    assert logs[0] == logs[1]


def test_operand_sets_rotate_across_contestants_and_batches():
    card = Simulation()
    interleave([Fake(label, card, 1e-3) for label in "ab"], card, Rotation(5), rounds=3, batch=2)
    assert [operand_set for _, operand_set in card.log] == [i % 5 for i in range(12)]


def test_a_batch_is_divided_by_its_launches():
    card = Simulation(host_cost_s=0.0)
    seconds = interleave([Fake("a", card, 3e-6)], card, Rotation(3), rounds=2, batch=8)
    assert seconds["a"] == pytest.approx([3e-6, 3e-6])


def test_short_launches_are_batched_and_long_ones_are_not():
    card = Simulation(host_cost_s=1e-9)
    assert find_pace([Fake("a", card, 10e-6)], card, Rotation(3), Policy()).batch == 4
    card = Simulation(host_cost_s=1e-9)
    assert find_pace([Fake("a", card, 1e-3)], card, Rotation(3), Policy()).batch == 1


def test_a_slow_host_is_hidden_behind_a_filler():
    """Launches of 5 µs that take the host 20 µs to queue would be timed as 20 µs without it."""
    card = Simulation(host_cost_s=20e-6)
    fakes = [Fake(label, card, seconds) for label, seconds in (("a", 5e-6), ("b", 6e-6))]
    plain = interleave(fakes, card, Rotation(3), rounds=5)
    assert min(plain["a"]) > 15e-6
    pace = find_pace(fakes, card, Rotation(3), Policy())
    assert pace.filler_s > 0
    seconds = interleave(fakes, card, Rotation(3), 20, pace.batch, pace.filler_s)
    assert seconds["a"] == pytest.approx([5e-6] * 20)
    assert seconds["b"] == pytest.approx([6e-6] * 20)


def test_a_fast_host_needs_no_filler():
    card = Simulation(host_cost_s=5e-6)
    assert find_pace([Fake("a", card, 1e-3)], card, Rotation(3), Policy()).filler_s == 0


def test_settling_waits_for_the_clocks():
    card = Simulation(warm_after_s=2.0, cold_factor=0.8)
    fakes = [Fake("a", card, 1e-3), Fake("b", card, 2e-3)]
    policy = Policy(settle_most_s=10.0)
    settling = settle(fakes, card, Rotation(3), policy, Pace(3e-3, 1, 0.0))
    assert settling.stable and settling.seconds > 1.5
    after = interleave(fakes, card, Rotation(3), rounds=3)
    assert after["a"] == pytest.approx([1e-3] * 3, rel=0.02)


def test_settling_of_a_steady_card_takes_the_least_time():
    card = Simulation()
    settling = settle([Fake("a", card, 1e-3)], card, Rotation(3), Policy(), Pace(1e-3, 1, 0.0))
    assert settling.stable and 0.5 <= settling.seconds < 1.1
    assert settling.windows == 3, "two windows may agree by chance"


def test_settling_gives_up():
    card = Simulation()
    restless = (1e-3 * (1 + i % 997 / 100) for i in itertools.count())
    settling = settle([Fake("a", card, restless)], card, Rotation(3), Policy(), Pace(1e-3, 1, 0.0))
    assert not settling.stable and settling.seconds >= Policy().settle_most_s


def test_rounds_keep_to_the_budget_but_not_below_the_fewest():
    policy = Policy(rounds=100, budget_s=1.0, fewest_rounds=10)
    assert timed_rounds(policy, Pace(2e-3, 1, 0.0)) == 100
    assert timed_rounds(policy, Pace(1e-3, 1, 0.0)) == 200
    assert timed_rounds(policy, Pace(1e-6, 1, 0.0)) == 1000
    assert timed_rounds(policy, Pace(20e-3, 1, 0.0)) == 50
    assert timed_rounds(policy, Pace(1.0, 1, 0.0)) == 10
    assert timed_rounds(Policy(rounds=3), Pace(100.0, 1, 0.0)) == 3


def test_the_fastest_are_kept_in_order():
    card = Simulation()
    fakes = [Fake(f"#{i}", card, seconds) for i, seconds in enumerate((5e-3, 2e-3, 3e-3, 1e-3))]
    assert fastest(fakes, card, Rotation(3), Policy(), keep=2) == ["#3", "#1"]
    assert fastest(fakes[:1], card, Rotation(3), Policy(), keep=2) == ["#0"]
