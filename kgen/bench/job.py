"""What the tool and its worker process say to each other, as JSON lines.

To the worker, on its standard input: one `Job`. From it, on a pipe of its own: messages
`{"type": "environment", ...}`, `{"type": "at", "index", "phase", "label"}` (what begins now),
`{"type": "shape", "index", "result"}`, `{"type": "crash", "index", "label", "what"}` (the last message: the
context is lost), `{"type": "error", "what", "exit_code"}` (nothing can be measured), `{"type": "done"}`.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field

from kgen.bench.timing import Policy
from kgen.runtime import GemmShape

OPENING = "opening the card"  # the first phase of every worker


@dataclass
class Job:
    """Shapes to measure from index `first` on. `skip` maps an index (as text) and a label that must not be
    launched there to its (status, note)."""

    shapes: list[GemmShape]
    libraries: list[tuple[str, str, str]]  # label, path, name
    policy: Policy
    lt_algorithms: int = 16
    lt_keep: int = 3
    first: int = 0
    skip: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read it back."""
        document = json.loads(text)
        return cls(
            shapes=[GemmShape(**shape) for shape in document.pop("shapes")],
            libraries=[(label, path, name) for label, path, name in document.pop("libraries")],
            policy=Policy(**document.pop("policy")),
            skip={
                index: {label: (status, note) for label, (status, note) in labels.items()}
                for index, labels in document.pop("skip").items()
            },
            **document,
        )

    def without(self, index: int, label: str, status: str, note: str) -> None:
        """Have the next worker begin at shape `index` and leave `label` out there."""
        self.first = index
        self.skip.setdefault(str(index), {})[label] = (status, note)

    def skips(self, index: int) -> dict[str, tuple[str, str]]:
        """What to leave out on a shape."""
        return self.skip.get(str(index), {})
