"""SM clock and power while something runs, from NVML, else from nvidia-smi, else nothing.

Sampling happens beside the work (a thread that calls NVML through ctypes and so holds no interpreter lock, or
a child nvidia-smi), because a pause between launches would let the clocks recover and falsify the reading.
Nothing here changes a setting of the card.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import threading
from dataclasses import dataclass
from typing import Protocol

_NVML_CLOCK_SM = 1  # nvmlClockType_t
_INTERVAL_S = 0.02


@dataclass(frozen=True)
class Reading:
    """What the card did over one run: MHz of the SM clock, W of board power, and how it was read."""

    source: str
    samples: int
    sm_mhz_median: float
    sm_mhz_min: float
    sm_mhz_max: float
    power_w_median: float | None

    @classmethod
    def of(cls, source: str, samples: list[tuple[float, float | None]]) -> Reading | None:
        """Summary of (MHz, W or None) pairs; None without samples."""
        if not samples:
            return None
        clocks = [clock for clock, _ in samples]
        power = [watts for _, watts in samples if watts is not None]
        return cls(
            source=source,
            samples=len(samples),
            sm_mhz_median=statistics.median(clocks),
            sm_mhz_min=min(clocks),
            sm_mhz_max=max(clocks),
            power_w_median=statistics.median(power) if power else None,
        )


class Sampler(Protocol):
    """Samples between `start` and `stop`."""

    def start(self) -> None:
        """Begin; call once before each `stop`."""

    def stop(self) -> Reading | None:
        """End and summarise; None where nothing was read."""


class NoSampler:
    """Stands in where neither NVML nor nvidia-smi answers."""

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> Reading | None:
        """Nothing was read."""
        return None


class NvmlSampler:
    """Reads the card with the given PCI bus id. Raises OSError where NVML is missing or refuses."""

    def __init__(self, pci_bus_id: str):
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        self._samples: list[tuple[float, float | None]] = []
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._ask("nvmlInit_v2")
        self._ask("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.encode(), ctypes.byref(self._device))
        self._sm_clock()  # so that a driver that hides the clock is found out here

    def _ask(self, function: str, *args: object) -> None:
        code = getattr(self._nvml, function)(*args)
        if code != 0:
            raise OSError(f"{function} returned {code}")

    def _sm_clock(self) -> float:
        value = ctypes.c_uint()
        self._ask("nvmlDeviceGetClockInfo", self._device, _NVML_CLOCK_SM, ctypes.byref(value))
        return float(value.value)

    def _power(self) -> float | None:
        milliwatts = ctypes.c_uint()
        try:
            self._ask("nvmlDeviceGetPowerUsage", self._device, ctypes.byref(milliwatts))
        except OSError:
            return None
        return milliwatts.value / 1000

    def _run(self) -> None:
        while True:
            try:
                self._samples.append((self._sm_clock(), self._power()))
            except OSError:
                return
            if self._done.wait(_INTERVAL_S):
                return

    def start(self) -> None:
        """Begin a fresh series."""
        self._samples = []
        self._done.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> Reading | None:
        """End the series and summarise it."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        return Reading.of("NVML", self._samples)


class SmiSampler:
    """Reads through a child nvidia-smi that prints a line every 100 ms."""

    def __init__(self, pci_bus_id: str):
        executable = shutil.which("nvidia-smi")
        if executable is None:
            raise OSError("nvidia-smi is not on the PATH")
        self._command = [
            executable,
            f"--id={pci_bus_id}",
            "--query-gpu=clocks.sm,power.draw",
            "--format=csv,noheader,nounits",
        ]
        once = subprocess.run(self._command, capture_output=True, text=True, timeout=20)
        if not parse_smi(once.stdout):
            raise OSError("nvidia-smi shows no clock")
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin a fresh series."""
        self._child = subprocess.Popen(
            [*self._command, "--loop-ms=100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def stop(self) -> Reading | None:
        """End the series and summarise it."""
        child, self._child = self._child, None
        if child is None:
            return None
        child.terminate()
        try:
            output, _ = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
        return Reading.of("nvidia-smi", parse_smi(output))


def parse_smi(text: str) -> list[tuple[float, float | None]]:
    """(MHz, W or None) of each complete `clock, power` line; a line cut short by the end is dropped."""
    samples: list[tuple[float, float | None]] = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        try:
            clock = float(fields[0])
        except ValueError:
            continue
        if len(fields) != 2:
            continue
        try:
            samples.append((clock, float(fields[1])))
        except ValueError:
            samples.append((clock, None))
    return samples


def find_sampler(pci_bus_id: str) -> Sampler:
    """The best sampler that this machine has."""
    for kind in (NvmlSampler, SmiSampler):
        try:
            return kind(pci_bus_id)
        except (OSError, AttributeError, subprocess.SubprocessError):
            continue
    return NoSampler()
