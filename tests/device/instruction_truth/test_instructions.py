"""The emulator against every instruction as a Hopper card computed it (`measured.json`, written by `measure.py`)."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import instructions as ins

from kgen.emulator.launch import Device

MEASURED = json.loads((Path(__file__).parent / "measured.json").read_text())
NUMBERS = {text: number for number, (text, *_) in enumerate(ins.forms())}


@cache
def words():
    return ins.inputs()


def test_the_record_has_every_form_that_the_driver_takes():
    assert list(MEASURED["records"]) == [text for text in NUMBERS if text not in MEASURED["refused"]]
    assert set(MEASURED["refused"]) < set(NUMBERS)


@pytest.mark.parametrize("text", MEASURED["records"])
def test_instruction(text):
    results = np.zeros(ins.COUNT, np.uint64)
    Device(ins.module(NUMBERS[text])).launch(ins.BLOCKS, ins.THREADS, [results, words()])
    assert ins.digest(text, words(), results) == MEASURED["records"][text]
