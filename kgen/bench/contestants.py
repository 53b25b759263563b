"""Launches bound to operands, and what they left in their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kgen.bench.check import Checker
from kgen.bench.operands import OperandSets, Outputs
from kgen.runtime import GemmShape, Stream

MOST_CHECKED_SETS = 16

# (shape, a, b, d) -> a function that queues the product of those addresses
Prepare = Callable[[GemmShape, int, int, int], Callable[[], None]]


@dataclass
class GpuContestant:
    """A `kgen.bench.timing.Contestant` with outputs of its own. `written` maps an output slot to the operand
    set whose product it holds since the last poisoning."""

    label: str
    kind: str
    shape: GemmShape
    prepare: Prepare
    operands: OperandSets
    outputs: Outputs
    written: dict[int, int] = field(default_factory=dict)
    _launches: dict[int, Callable[[], None]] = field(default_factory=dict)

    def launch(self, operand_set: int) -> None:
        """Queue the product of a set. What Python does for it is kept for the next time."""
        slot = operand_set % self.outputs.slots
        launch = self._launches.get(operand_set)
        if launch is None:
            a, b = self.operands.a(operand_set), self.operands.b(operand_set)
            launch = self.prepare(self.shape, a, b, self.outputs.d(slot))
            self._launches[operand_set] = launch
        launch()
        self.written[slot] = operand_set

    def poison(self, stream: Stream) -> None:
        """Forget all results."""
        self.outputs.poison(stream)
        self.written.clear()


def sets_to_check(contestants: Sequence[GpuContestant], most: int = MOST_CHECKED_SETS) -> list[int]:
    """Operand sets whose results are still there, at most `most`, evenly spread."""
    present = sorted({operand_set for c in contestants for operand_set in c.written.values()})
    if len(present) <= most:
        return present
    return [present[i * len(present) // most] for i in range(most)]


def worst_errors(contestants: Sequence[GpuContestant], checker: Checker) -> tuple[dict[str, float], int]:
    """The largest relative error of each contestant over the buffers it wrote, and how many were compared.

    NaN where any compared buffer holds one, or none of a contestant's was compared.
    """
    errors: dict[str, list[float]] = {contestant.label: [] for contestant in contestants}
    sets = sets_to_check(contestants)
    for contestant in contestants:  # one whose results all fall outside the selection is checked on its own
        held = contestant.written.values()
        if held and not set(sets) & set(held):
            sets.append(next(iter(held)))
    for operand_set in sets:
        first = contestants[0]
        checker.load(first.shape, first.operands.a(operand_set), first.operands.b(operand_set))
        for contestant in contestants:
            slot = operand_set % contestant.outputs.slots
            if contestant.written.get(slot) == operand_set:
                error = checker.error(contestant.shape, contestant.outputs.d(slot))
                errors[contestant.label].append(error)
    return (
        {label: worst_of(values) for label, values in errors.items()},
        sum(len(values) for values in errors.values()),
    )


def worst_of(errors: Sequence[float]) -> float:
    """The maximum, but NaN where any is NaN or there is none."""
    if not errors or any(error != error for error in errors):
        return float("nan")
    return max(errors)
