"""Runs a worker process and ends it when it falls silent, so that a hung kernel cannot hang the tool.

A kernel that never ends cannot be called off from within its process: every call into CUDA waits for it. So
the worker says what it begins, and silence longer than a limit is taken for a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
_GRACE_S = 15.0  # a killed process leaves only when the driver has torn its context down
_TAIL_BYTES = 2000


@dataclass(frozen=True)
class Ending:
    """How a worker ended. `kind` is `finished` (it closed its channel and left), or `hung` (it was killed).

    `last` is its last message but for results, `{}` before the first; `output` the end of what it printed.
    `gone` is False where a killed worker would not leave, so that the card may still be busy.
    """

    kind: str
    returncode: int | None
    last: Message
    output: str
    gone: bool = True


def watch(
    command: Sequence[str],
    job: str,
    limit_s: float,
    on_message: Callable[[Message], None],
    env: dict[str, str] | None = None,
) -> Ending:
    """Run `command FD` with `job` on its standard input; it writes JSON lines to file descriptor FD.

    It is killed, with all it started, when it neither writes nor ends for `limit_s` seconds.
    """
    reader, writer = os.pipe()
    last: Message = {}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(job.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                [*command, str(writer)],
                stdin=given,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(writer,),
                start_new_session=True,
                env=env,
            )
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        try:
            hung = False
            for message in _messages(reader, limit_s):
                if message is None:
                    hung = True
                    break
                on_message(message)
                if message.get("type") in ("at", "crash", "error", "done"):
                    last = message
            gone = True
            if not hung:
                try:
                    process.wait(timeout=limit_s)
                except subprocess.TimeoutExpired:
                    hung = last.get("type") not in ("crash", "error", "done")
            if process.poll() is None:
                gone = _kill(process)
        except BaseException:
            _kill(process)  # an interrupt of the tool must not leave a worker on the card
            raise
        finally:
            os.close(reader)
        printed.seek(0, os.SEEK_END)
        printed.seek(max(0, printed.tell() - _TAIL_BYTES))
        output = printed.read().decode(errors="replace").strip()
    return Ending("hung" if hung else "finished", process.returncode, last, output, gone)


def _messages(reader: int, limit_s: float) -> Iterator[Message | None]:
    """Messages as they come; None once, and last, when none came within the limit."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        deadline = time.monotonic() + limit_s
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                yield None
                return
            chunk = os.read(reader, 1 << 16)
            if not chunk:
                return
            pending += chunk
            *lines, pending = pending.split(b"\n")
            for line in lines:
                yield json.loads(line)
            deadline = time.monotonic() + limit_s


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """End the worker's own process group; True when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    return True
