"""Every error a user can meet.

A `KgenError` is a message for a person: the command line prints it without a traceback and exits with
`exit_code` (2 for a spec, plan or request that cannot be, 1 for a step that failed).
"""

from __future__ import annotations

from dataclasses import dataclass


class KgenError(Exception):
    """Root of all errors that are the user's to read."""

    exit_code = 1


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file, with the place (1-based) and a way out."""

    file: str
    line: int
    col: int
    field: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        field = f"{self.field}: " if self.field else ""
        return f"{self.file}:{self.line}:{self.col}: {field}{self.what}{hint}"


class SpecError(KgenError):
    """A spec that does not say what it must; carries every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: list[Problem]):
        self.problems = sorted(problems, key=lambda p: (p.file, p.line, p.col))
        super().__init__("\n".join(str(p) for p in self.problems))


@dataclass(frozen=True)
class Refusal:
    """Why a well-formed choice cannot be: the dotted spec field, the arithmetic, and the nearest way out."""

    field: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.what}" + (f" ({self.hint})" if self.hint else "")


class PlanError(KgenError):
    """A well-formed spec that the hardware cannot run; carries every refusal."""

    exit_code = 2

    def __init__(self, refusals: list[Refusal]):
        self.refusals = refusals
        super().__init__("\n".join(map(str, refusals)))


class ProtocolError(KgenError):
    """A plan whose barriers can hang or race, or that breaks a fact of the hardware; carries the whole report."""


class UsageError(KgenError):
    """A command asked for something that does not exist (a missing file, an unknown preset)."""

    exit_code = 2


class ProjectError(KgenError):
    """A project directory that must not be written as it stands (hand edits, foreign files)."""


class BuildError(KgenError):
    """The compiler refused, or its report broke a rule (spill, warning, serialised wgmma)."""


class ToolchainError(KgenError):
    """No compiler, header or library where one is needed."""


class EmulatorError(KgenError):
    """The emulated program did something the hardware forbids, or something the emulator does not model."""
