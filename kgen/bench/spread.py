"""Order statistics of timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile (0..1) with linear interpolation between the two nearest order statistics."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return quantile(values, 0.5)


@dataclass(frozen=True)
class Spread:
    """Seconds per launch over one run. `drift` is how far the medians of the run's two halves lie apart,
    relative to the whole: a difference between two contestants that is not larger than it says nothing."""

    median_s: float
    p10_s: float
    p90_s: float
    drift: float
    samples: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Summary of samples in the order they were taken."""
        middle, half = median(seconds), len(seconds) // 2
        drift = abs(median(seconds[:half]) - median(seconds[half:])) / middle if half and middle else 0.0
        return cls(middle, quantile(seconds, 0.1), quantile(seconds, 0.9), drift, len(seconds))
