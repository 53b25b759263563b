"""Proves a protocol for the trip counts that matter, or finds the shortest execution in which it fails.

Which trip counts: a role's position in a ring of n stages is a stage and the parity of a lap, which repeats after 2n
steps, and every condition that is checked lies between events at most two laps apart (a wait and the phase after it, a
buffer's use and its next). So 0 and 1 k tiles (prologue without loop, loop without repetition), n-1, n and n+1 (before,
at and after the first reuse) and 2n+1 (every pair a lap or two apart, in both parities) show each pair that any number
of k tiles does. Tiles per CTA: 0; 1; 2, where the cursor starts on another stage (k tiles = n-1, n+1) or on the same
with the other parity (n); 3, so that a tile has one before and one after it; and 2n+1 tiles of one k tile (or none),
because a loop that ends at once must go round every ring as well, also rings that turn once per tile. Longer runs
repeat these pairs. This bound is an argument, not a proof for all trip counts; the certificate names the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgen.protocol.events import Violation
from kgen.protocol.order import execute
from kgen.protocol.program import Program


@dataclass(frozen=True)
class Outcome:
    """What checking a program came to. `trips` are the counts at which the violation, if any, shows."""

    name: str
    cluster: int
    states: int
    k_tiles: tuple[int, ...]
    tiles: tuple[int, ...]
    why: str = ""  # why some counts cannot occur
    violation: Violation | None = None
    trips: tuple[tuple[str, int], ...] = ()

    @property
    def proven(self) -> bool:
        return self.violation is None

    @property
    def certificate(self) -> str:
        """One line, the same on every machine."""
        counts = [f"{what} {{{', '.join(map(str, n))}}}" for what, n in
                  (("k tiles", self.k_tiles), ("tiles per CTA", self.tiles)) if n]  # fmt: skip
        who = f"a cluster of {self.cluster}" if self.cluster > 1 else "one CTA"
        return f"proven: {self.states:,} states, {', '.join(counts)}, {who}"


def trip_counts(program: Program, tiles: Iterable[int] = (0, 1, 2, 3)) -> list[dict[str, int]]:
    """The bounds, smallest first: every loop length with one tile, those up to ring + 1 with two, the two shortest
    with three, and the loops of at most one k tile with as many tiles as two laps of every ring take."""
    tiles = tuple(tiles)
    depth = max((r.depth for r in program.rings if r.name == "ring"), default=1)
    least, most = program.least.get("k_tiles", 0), program.most.get("k_tiles")
    wanted = {0, 1, depth - 1, depth, depth + 1, 2 * depth + 1}
    ks = sorted({k for k in wanted if k >= least and (most is None or k <= most)})
    short = [k for k in ks if k <= depth + 1]
    pairs = set()
    deepest = max((r.depth for r in program.rings), default=1)
    if max(tiles) > 1:
        pairs |= {(2 * deepest + 1, k) for k in (0, 1) if k in ks}
    for t in tiles:
        if t == 0:
            pairs.add((0, ks[0]))
        elif t == 1:
            pairs |= {(1, k) for k in ks}
        elif t == 2:
            pairs |= {(2, k) for k in short}
        else:
            pairs |= {(t, k) for k in short[:2]}
    return [{"k_tiles": k, "tiles": t} for t, k in sorted(pairs, key=lambda p: (p[0] * p[1], p))]


def check(program: Program, tiles: Iterable[int] = (0, 1, 2, 3), merge: bool = True) -> Outcome:
    """Checks every bound, smallest first; stops at the first violation."""
    states, bounds = 0, trip_counts(program, tiles)
    ks = tuple(sorted({b["k_tiles"] for b in bounds}))
    ts = tuple(sorted({b["tiles"] for b in bounds}))
    for trips in bounds:
        more, violation = execute(program, trips, merge)
        states += more
        if violation:
            return Outcome(program.name, program.cluster, states, ks, ts, program.why, violation,
                           tuple(trips.items()))  # fmt: skip
    return Outcome(program.name, program.cluster, states, ks, ts, program.why)
