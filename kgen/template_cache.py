"""Compiled templates in the user's cache directory: compiling them takes longer than all else that `kgen new`
does.

A template is compiled again when its text, the rendering code, Jinja or Python changed. Whatever goes wrong
with the directory, rendering works without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import jinja2


class TemplateCache(jinja2.FileSystemBytecodeCache):
    """Jinja's own cache, which must not fail where the directory cannot be written."""

    def load_bytecode(self, bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def use_template_cache() -> None:
    """Makes rendering in this process use the cache. `KGEN_TEMPLATE_CACHE=0` turns it off."""
    from kgen import render

    if os.environ.get("KGEN_TEMPLATE_CACHE") == "0":
        return
    # Jinja's check does not know the environment's options, which stand in render.py.
    made_by = Path(render.__file__).read_bytes() + getattr(jinja2, "__version__", "").encode()
    with contextlib.suppress(OSError, RuntimeError):
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        directory = Path(home) / "kgen" / f"templates-{hashlib.sha256(made_by).hexdigest()[:16]}"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        render.environment().bytecode_cache = TemplateCache(str(directory))
