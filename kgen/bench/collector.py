"""The report, put together from what one worker after another says."""

from __future__ import annotations

from collections.abc import Callable

from kgen.bench.job import OPENING, Job
from kgen.bench.report import Environment, ShapeResult, shape_from_dict
from kgen.bench.watchdog import Ending, Message
from kgen.errors import KgenError, UsageError
from kgen.runtime import DeviceError, NoDeviceError


class Collector:
    """Puts the report together from what the workers say, and tells the next one where to go on."""

    def __init__(self, job: Job, on_progress: Callable[[str], None]):
        self._job, self._on_progress = job, on_progress
        self.results: dict[int, ShapeResult] = {}
        self.environment: Environment | None = None
        self.notes: list[str] = []

    @property
    def unfinished(self) -> bool:
        """Whether there are shapes without a result."""
        return self._job.first < len(self._job.shapes)

    def take(self, message: Message) -> None:
        """One message of the worker."""
        kind = message["type"]
        if kind == "environment":
            self.environment = Environment(**message["environment"])
            self.notes += [note for note in message["notes"] if note not in self.notes]
        elif kind == "shape":
            self.results[message["index"]] = shape_from_dict(message["result"])
            self._job.first = message["index"] + 1
        elif kind == "at":
            of = f" of {message['label']}" if message["label"] else ""
            self._on_progress(f"{self._job.shapes[message['index']].name}: {message['phase']}{of}")

    def settle(self, ending: Ending, limit_s: float) -> None:
        """Decide what the worker's end means for the shape it was at."""
        last = ending.last
        if last.get("phase") == OPENING and ending.kind == "hung":
            for index in range(self._job.first, len(self._job.shapes)):
                self._lose("hung", {**last, "index": index}, "the card does not open")
            return
        if ending.kind == "finished":
            if last.get("type") == "done":
                return
            if last.get("type") == "error":
                raise _error(last["what"], last["exit_code"])
            if last.get("type") == "crash":
                self._lose("failed", last, last["what"])
                return
        if not last or (self.environment is None and ending.kind == "finished"):
            raise DeviceError(f"the worker left with {ending.returncode} at once: {ending.output}")
        if ending.kind == "hung":
            what = f"no sign of life for {limit_s:.0f} s"
            if not ending.gone:
                what += "; its process could not be ended, so the card may still be busy"
            self._lose("hung", last, what)
        else:
            died = f"the process died ({ending.returncode}) {ending.output.splitlines()[-1:] or ''}"
            self._lose("failed", last, died)

    def _lose(self, status: str, at: Message, what: str) -> None:
        index, label = at["index"], at["label"]
        name = self._job.shapes[index].name
        if self._job.first > index:  # it was done with the shape and ended on its way to the next
            index = self._job.first
            label = ""
            if index >= len(self._job.shapes):
                return
        if label and label not in self._job.skips(index):
            self.notes.append(f"{name}: {label} {status}: {what}")
            self._job.without(index, label, status, what)
            return
        phase = at.get("phase", "")
        problem = f"{status} {f'while {phase}' if phase else ''}: {what}".replace(" :", ":")
        self.notes.append(f"{name}: {problem}")
        self.results[index] = ShapeResult(self._job.shapes[index], (), problem=problem, hung=status == "hung")
        self._job.first = index + 1


def _error(what: str, exit_code: int) -> KgenError:
    """The worker's error as one of this process."""
    return {2: UsageError, 3: NoDeviceError}.get(exit_code, DeviceError)(what)
