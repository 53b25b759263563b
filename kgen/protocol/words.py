"""How barriers, CTAs and counts are named in messages."""

from __future__ import annotations


def barrier_name(key: tuple) -> str:
    """`full[2]`."""
    return f"{key[1]}[{key[2]}]"


def place_name(place: tuple) -> str:
    """`b[2]`; slices are not told apart."""
    return f"{place[1].split('@')[0]}[{place[2]}]"


def cta_of(rank: int) -> str:
    return f"CTA {rank}"


def trips_text(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def phase_name(phase: int) -> str:
    """`phase 3`; before the first phase a barrier counts as complete, which starts a ring empty."""
    return f"phase {phase}" if phase >= 0 else "the fresh barrier"
