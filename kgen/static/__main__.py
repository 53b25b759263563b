"""Prints the static performance page, or writes it to the file that is named."""

from __future__ import annotations

import sys
from pathlib import Path

from kgen.static.page import page

if len(sys.argv) > 1:
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
else:
    sys.stdout.write(page())
