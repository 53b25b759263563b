"""Where an agent stands in an execution."""

from __future__ import annotations

from kgen.protocol.events import Event
from kgen.protocol.program import Wait
from kgen.protocol.unroll import Agent, Step
from kgen.protocol.words import barrier_name, cta_of, phase_name


class AgentState:
    """Progress of one agent: the events that its next one follows, and its asynchronous work."""

    def __init__(self, agent: Agent):
        self.agent = agent
        self.at = 0
        self.started = -1  # its first event: that its CTA runs
        self.preds: list[int] = []
        self.blocked: Step | None = None
        self.groups: list[list] = []  # of wgmma: [start, end or None]
        self.mma_chain: dict = {}  # last end per accumulator (tcgen05) or of all (wgmma)
        self.copies = False  # whether tcgen05.cp is in the queue as well
        self.mma_ends: list[int] = []  # since the last commit
        self.joined: list[int] = []
        self.commits = 0
        self.stores: list[list] = []  # since the last group
        self.store_groups: list[list[list]] = []
        self.store_chain: list[int] = []
        self.unfenced: list[tuple] = []
        self.fences: list[int] = []  # its proxy fences, by their events

    @property
    def where(self) -> str:
        """`consumer of CTA 1`."""
        return f"{self.agent.name} of {cta_of(self.agent.cta)}"

    def event(self) -> Event:
        """That it is blocked, as the last line of a trace."""
        return Event(self, ("blocked", self.blocked))

    def next_event(self) -> Event:
        """The step that it is at, as the last line of a trace."""
        return Event(self, self.agent.steps[self.at])

    def waits_for(self) -> str:
        step = self.blocked
        if type(step.op) is Wait:
            return f"{self.where} waits for {barrier_name(step.keys[0])} ({phase_name(step.phase)})"
        what = type(step.op).__name__
        return f"{self.where} waits in {what}"
