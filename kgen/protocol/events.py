"""What happens in an execution and in which order it must: events with their causal pasts, and what can go wrong."""

from __future__ import annotations

from dataclasses import dataclass

# Every property that a protocol must have, by the name under which its violation is reported.
DEADLOCK = "deadlock"
ALIASING = "phase aliasing"
OVERWRITE = "overwritten while in use"
INCOMPLETE = "read of incomplete data"
TRIPS = "unequal trip counts"
BYTES = "expected bytes differ from delivered bytes"
IN_FLIGHT = "in flight at exit"
EXITED = "remote signal to an exited CTA"
ARRIVALS = "too many arrivals"
EARLY = "used before it is initialised"
NO_CTA = "signal to a CTA outside the cluster"
TMEM = "tensor memory not freed once"
NAMED = "named barrier conflict"
CTA_WIDE = "CTA-wide barrier inside a role"
FENCE = "missing proxy fence"
CLC = "launch-control request after a failed one"
RANGE = "stage outside the ring"
LAUNCHED = "peer CTA not known to run"


@dataclass(frozen=True)
class Event:
    """Something that happened. `agent` is None for the hardware; `what` a Step, or a tuple for a completion."""

    agent: object
    what: object


@dataclass(frozen=True)
class Violation:
    """A property that fails. `trace` are the events of a shortest execution that shows it, in order; `key` the
    barrier concerned, if one is; `arithmetic` what it expects against what comes."""

    kind: str
    what: str
    hint: str = ""
    trace: tuple[Event, ...] = ()
    key: tuple | None = None
    arithmetic: str = ""


class Stop(Exception):
    """Ends an execution at its first violation."""

    def __init__(self, violation: Violation):
        super().__init__(violation.what)
        self.violation = violation


class History:
    """Events in the order in which they were executed, each with the set of events that must come before it.

    The sets are integers used as bit sets, so that "must a come before b" is one shift.
    """

    def __init__(self):
        self.past: list[int] = []
        self.events: list[tuple] = []  # (agent, what)

    def add(self, preds, agent, what) -> int:
        """A new event right after `preds` (event numbers); returns its number."""
        number = len(self.past)
        bits = 1 << number
        past = self.past
        for p in preds:
            bits |= past[p]
        past.append(bits)
        self.events.append((agent, what))
        return number

    def before(self, a: int, b: int) -> bool:
        """Whether `a` is `b`, or comes before it in every execution."""
        return self.past[b] >> a & 1 == 1

    def until(self, *numbers: int) -> tuple[Event, ...]:
        """The causal past of some events: the shortest execution in which they happen."""
        bits = 0
        for n in numbers:
            bits |= self.past[n]
        chosen = (i for i in range(bits.bit_length()) if bits >> i & 1)
        return tuple(Event(*self.events[i]) for i in chosen if self.events[i][1] is not None)
