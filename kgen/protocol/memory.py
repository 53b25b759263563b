"""Buffers: who may touch them when. Two uses conflict unless the end of one comes before the start of the other."""

from __future__ import annotations

from kgen.protocol.events import FENCE, INCOMPLETE, OVERWRITE, RANGE, TMEM, History
from kgen.protocol.program import Program
from kgen.protocol.words import cta_of, place_name


class Place:
    """One slice of one stage of a buffer. `end` is the last write's end, None while it is in flight."""

    __slots__ = ("by", "copied", "end", "fence", "generic", "reads", "start", "tag", "tags", "written")

    def __init__(self):
        self.written = False
        self.end: int | None = None
        self.start = 0  # of the last write
        self.tag: tuple = ()
        self.tags: set[tuple] = set()  # of earlier writes
        self.by = None  # the agent whose multiplies write here
        self.copied = False  # by tcgen05.cp of `by`
        self.generic = False
        self.fence: int | None = None
        self.reads: list[list] = []  # [start, end or None, agent], since the last write


class Memory:
    """Every place of every CTA."""

    def __init__(self, program: Program, history: History):
        self.program, self.history = program, history
        self.places: dict[tuple, Place] = {}
        self.spaces = {b.name: b for b in program.buffers}
        self.allocated: dict[int, int] = {}  # CTA -> the event that allocated its tensor memory
        self.freed: dict[int, int] = {}

    def _place(self, run, state, key: tuple, event: int) -> Place:
        place = self.places.get(key)
        buffer = self.spaces[key[1].split("@")[0]]
        if place is None:
            if not 0 <= key[2] < buffer.depth:
                run.fail(RANGE, f"{state.where} uses {place_name(key)}; there are {buffer.depth}",
                         "let all roles take the depth from one constant", event, key=key)  # fmt: skip
            place = self.places[key] = Place()
        if buffer.space == "tmem":
            alloc = self.allocated.get(key[0])
            if alloc is None or not self.history.before(alloc, event):
                run.fail(TMEM, f"{state.where} may use {place_name(key)} before it is allocated",
                         "publish the address through a barrier after the allocation", event, key=key)  # fmt: skip
            if key[0] in self.freed:
                run.fail(TMEM, f"{state.where} may use {place_name(key)} after it was freed",
                         "free it when everybody is done", event, key=key)  # fmt: skip
        return place

    def _reads_over(self, run, state, key: tuple, place: Place, event: int, queue=None) -> None:
        """Earlier reads are; those by `queue` come before anyhow, whoever's queue that is."""
        before = self.history.before
        for start, end, reader in place.reads:
            if reader is queue:
                continue
            if end is None or not before(end, event):
                began = before(start, event)
                how = "still reads" if began else "has yet to read"
                run.fail(OVERWRITE, f"{state.where} overwrites {place_name(key)} of {cta_of(key[0])}, which "
                         f"{reader.where} {how}", "release a buffer only when its reads are complete, and wait for "
                         "every release", event, key=key)  # fmt: skip
        place.reads = []

    def _answers_fenced(self, run, state, key: tuple, reads: list, event: int) -> None:
        """Whoever has read an answer of launch control fences before another is asked for. The memory model asks that
        of every read before an asynchronous write; kernels do so here (CUDA Programming Guide: "release read of result
        to the async proxy")."""
        for start, _, reader in reads:
            if not any(start < fence and self.history.before(fence, event) for fence in reader.fences):
                run.fail(FENCE, f"{state.where} lets another answer overwrite {place_name(key)} of {cta_of(key[0])}, "
                         f"which {reader.where} has read without a proxy fence since",
                         "fence.proxy.async by every reader, before it arrives", event, key=key)  # fmt: skip

    def start_write(
        self, run, state, key: tuple, tag: tuple, event: int, generic: bool = False, answer: bool = False
    ) -> None:
        place = self._place(run, state, key, event)
        if place.written and (place.end is None or not self.history.before(place.end, event)):
            run.fail(OVERWRITE, f"{state.where} overwrites {place_name(key)} of {cta_of(key[0])} while an earlier "
                     "write to it may be in flight", "wait for the write before", event, key=key)  # fmt: skip
        reads = place.reads
        self._reads_over(run, state, key, place, event)
        if answer:
            self._answers_fenced(run, state, key, reads, event)
        place.tags.add(place.tag)
        place.written, place.start, place.end, place.tag, place.by = True, event, None, tag, None
        place.copied = False
        # Tensor memory has one proxy: tcgen05.wait::st orders its stores.
        shared = self.spaces[key[1].split("@")[0]].space == "shared"
        place.generic, place.fence = generic and shared, None

    def end_write(self, key: tuple, event: int) -> None:
        self.places[key].end = event

    def accumulate(self, run, state, key: tuple, tag: tuple, event: int, fresh: bool) -> None:
        """A multiply's result. Multiplies of one agent on one accumulator run in order."""
        place = self._place(run, state, key, event)
        ordered = place.by is state or (place.end is not None and self.history.before(place.end, event))
        if place.written and not ordered:
            run.fail(OVERWRITE, f"{state.where} multiplies into {place_name(key)} while another write to it may be in "
                     "flight", "one thread per accumulator", event, key=key)  # fmt: skip
        if not fresh and (not place.written or place.tag != tag):
            run.fail(INCOMPLETE, f"{state.where} accumulates onto {place_name(key)}, which holds "
                     + ("nothing" if not place.written else "another tile's result"),
                     "let the first multiply of a tile overwrite", event, key=key)  # fmt: skip
        self._reads_over(run, state, key, place, event)
        if tag != place.tag:
            place.tags.add(place.tag)
        place.written, place.start, place.end, place.tag = True, event, None, tag
        place.by, place.generic = state, False

    def copy(self, run, state, key: tuple, tag: tuple, event: int) -> None:
        """What tcgen05.cp brings. It and the multiplies that read it are in one agent's queue."""
        place = self._place(run, state, key, event)
        mine = place.copied and place.by is state
        if place.written and not mine and (place.end is None or not self.history.before(place.end, event)):
            run.fail(OVERWRITE, f"{state.where} copies to {place_name(key)} while another write to it may be in "
                     "flight", "give each thread that copies columns of its own", event, key=key)  # fmt: skip
        self._reads_over(run, state, key, place, event, queue=state)
        place.tags.add(place.tag)
        place.written, place.start, place.end, place.tag = True, event, None, tag
        place.by, place.copied, place.generic = state, True, False

    def start_read(self, run, state, key: tuple, tag: tuple, event: int, proxy: str) -> list:
        """A read from `event` on; the caller enters its end in the record returned."""
        place = self._place(run, state, key, event)
        name = f"{place_name(key)} of {cta_of(key[0])}"
        if not place.written:
            run.fail(INCOMPLETE, f"{state.where} reads {name}, which nothing has written",
                     "wait until it is full; skip what an empty loop leaves undone", event, key=key)  # fmt: skip
        if place.tag != tag and tag in place.tags:
            run.fail(OVERWRITE, f"{name} is overwritten before {state.where} has read it: it holds iteration "
                     f"{place.tag} instead of {tag}", "wait until a buffer is released before it is filled again",
                     place.start, event, key=key)  # fmt: skip
        queued = place.copied and place.by is state and proxy == "async"
        if not queued and (place.end is None or not self.history.before(place.end, event)):
            run.fail(INCOMPLETE, f"{state.where} may read {name} before its data has landed",
                     "wait for the barrier that the write completes", event, key=key)  # fmt: skip
        if place.tag != tag:
            run.fail(INCOMPLETE, f"{state.where} finds {name} with the data of iteration {place.tag}, and wants "
                     f"{tag}", "producer and consumer must walk the ring alike", event, key=key)  # fmt: skip
        if (
            proxy == "async"
            and place.generic
            and (place.fence is None or not self.history.before(place.fence, event))
        ):
            run.fail(FENCE, f"{state.where} lets an asynchronous unit read {name} after generic writes without a "
                     "proxy fence between", "fence.proxy.async by every writer, before the barrier", event,
                     key=key)  # fmt: skip
        record = [event, None, state]
        place.reads.append(record)
        return record
