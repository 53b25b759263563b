"""Readings of clock and power."""

from __future__ import annotations

from kgen.telemetry import Reading, find_sampler, parse_smi


def test_lines_of_nvidia_smi():
    text = "1980, 512.31\n1965, [N/A]\n\nno devices were found\n1950, 498.0\n19"
    assert parse_smi(text) == [(1980.0, 512.31), (1965.0, None), (1950.0, 498.0)]


def test_a_summary():
    reading = Reading.of("NVML", [(1500.0, 700.0), (1400.0, None), (1450.0, 690.0)])
    assert (reading.sm_mhz_median, reading.sm_mhz_min, reading.sm_mhz_max) == (1450.0, 1400.0, 1500.0)
    assert reading.power_w_median == 695.0 and reading.samples == 3
    assert Reading.of("NVML", []) is None


def test_there_always_is_a_sampler():
    sampler = find_sampler("0000:ff:1f.7")  # no such card, whatever the machine has
    sampler.start()
    assert sampler.stop() is None
