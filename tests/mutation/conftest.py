"""Mutation tests import their helpers, and those of the protocol tests, by name."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "protocol")]
