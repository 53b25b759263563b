"""The watchdog, with workers that answer, sleep, die and chatter."""

from __future__ import annotations

import os
import sys
import time

import pytest

from kgen.bench.watchdog import watch

HEAD = """
import json, os, sys, time
channel = os.fdopen(int(sys.argv[1]), "w")
def tell(**message):
    channel.write(json.dumps(message) + "\\n"); channel.flush()
"""


def ran(body: str, limit_s: float = 5.0):
    messages = []
    ending = watch([sys.executable, "-c", HEAD + body], '{"a": 1}', limit_s, messages.append)
    return ending, messages


def test_a_worker_that_answers():
    ending, messages = ran('tell(type="at", job=sys.stdin.read()); tell(type="done"); print("by the way")')
    assert ending.kind == "finished" and ending.returncode == 0 and ending.last == {"type": "done"}
    assert messages[0]["job"] == '{"a": 1}'
    assert ending.output == "by the way"


def test_a_worker_that_sleeps_is_killed_and_its_last_word_kept():
    begin = time.monotonic()
    ending, _ = ran('tell(type="at", label="x", pid=os.getpid()); time.sleep(60)', limit_s=0.5)
    assert ending.kind == "hung" and ending.gone and ending.last["label"] == "x"
    assert time.monotonic() - begin < 20
    with pytest.raises(ProcessLookupError):
        os.kill(ending.last["pid"], 0)


def test_a_worker_that_keeps_talking_may_take_longer_than_the_limit():
    ending, messages = ran("for i in range(6): tell(type='at', i=i); time.sleep(0.3)", limit_s=1.5)
    assert ending.kind == "finished" and len(messages) == 6


def test_a_worker_that_closes_its_channel_but_stays():
    ending, _ = ran("channel.close(); time.sleep(60)", limit_s=0.5)
    assert ending.kind == "hung"


def test_a_worker_that_cannot_leave_after_a_crash_is_no_hang():
    ending, _ = ran('tell(type="crash"); channel.close(); time.sleep(60)', limit_s=0.5)
    assert ending.kind == "finished" and ending.last == {"type": "crash"} and ending.gone


def test_a_worker_that_dies():
    ending, _ = ran('print("so long"); sys.stdout.flush(); os.abort()')
    assert ending.kind == "finished" and ending.returncode < 0 and ending.output == "so long"


def test_results_are_not_taken_for_the_last_word():
    ending, _ = ran('tell(type="at", i=1); tell(type="shape", i=2)')
    assert ending.last == {"type": "at", "i": 1}


def test_an_error_of_the_tool_leaves_no_worker():
    def fail(message):
        pids.append(message["pid"])
        raise KeyboardInterrupt

    pids: list[int] = []
    body = 'tell(type="at", pid=os.getpid()); time.sleep(60)'
    with pytest.raises(KeyboardInterrupt):
        watch([sys.executable, "-c", HEAD + body], "", 5.0, fail)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
