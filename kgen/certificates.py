"""Certificates of plans that were proven before, in the user's cache directory: the proof takes as long as the rest of
`kgen new`.

A plan is proven again when anything in it, or in the checker, changed. `kgen check` always proves. Whatever goes wrong
with the directory, the proof is made without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from kgen.plan.common import GemmPlan


def certificate(plan: GemmPlan) -> str:
    """What the protocol checker proved of `plan`, one line. Raises ProtocolError with its report where it cannot."""
    kept = _place(plan)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if kept and (text := kept.read_text(encoding="utf-8")).startswith("proven: "):
            return text
    from kgen.protocol import certify

    proven = certify(plan)
    with contextlib.suppress(OSError):
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept.write_text(proven, encoding="utf-8")
    return proven


def _place(plan: GemmPlan) -> Path | None:
    """Where the certificate of this plan by this checker lies. `KGEN_TEMPLATE_CACHE=0` turns the cache off."""
    if os.environ.get("KGEN_TEMPLATE_CACHE") == "0":
        return None
    with contextlib.suppress(OSError, RuntimeError):
        checker = sorted((Path(__file__).parent / "protocol").glob("*.py"))
        made_by = "".join(f"{p.name} {p.stat().st_mtime_ns} {p.stat().st_size}\n" for p in checker)
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        key = hashlib.sha256(f"{made_by}{plan!r}".encode()).hexdigest()[:32]
        return Path(home) / "kgen" / "certificates" / key
    return None
