"""The card in this machine, through cuda-python's driver bindings. Needs no driver; makes no context."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from kgen.arch import ARCHS, Arch


@dataclass(frozen=True)
class Card:
    """One GPU. Sizes in bytes; `driver_version` is the newest CUDA release that the driver serves."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver_version: str

    @property
    def arch(self) -> Arch | None:
        """The architecture whose kernels run on this card, if any: an `a` target needs an exact match."""
        return next((a for a in ARCHS.values() if a.compute_capability == self.compute_capability), None)


def card() -> Card | None:
    """Device ordinal 0, or None without driver or card. Never raises."""
    found, _ = cards()
    return found[0] if found else None


def cards() -> tuple[list[Card], str]:
    """Every visible card, and in words why there is none. Never raises."""
    try:
        from cuda.bindings import driver

        return _cards(driver), ""
    except _NoCardError as e:
        return [], str(e)
    except Exception as e:  # the bindings raise errors of their own kind where there is no libcuda
        return [], f"no CUDA driver: {str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__}"


class _NoCardError(Exception):
    pass


def _cards(driver) -> list[Card]:
    def call(function, *args):
        status, *values = function(*args)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise _NoCardError(f"the driver answers {status.name}")
        return values[0] if values else None

    call(driver.cuInit, 0)
    release = call(driver.cuDriverGetVersion)
    attribute = driver.CUdevice_attribute
    prefix = "CU_DEVICE_ATTRIBUTE_"
    found = []
    for ordinal in range(call(driver.cuDeviceGetCount)):
        device = call(driver.cuDeviceGet, ordinal)

        def get(name: str, device=device) -> int:
            return int(call(driver.cuDeviceGetAttribute, getattr(attribute, prefix + name), device))

        name = call(driver.cuDeviceGetName, 256, device)
        found.append(
            Card(
                name=name.split(b"\0")[0].decode(errors="replace").strip(),
                compute_capability=(get("COMPUTE_CAPABILITY_MAJOR"), get("COMPUTE_CAPABILITY_MINOR")),
                sm_count=get("MULTIPROCESSOR_COUNT"),
                l2_bytes=get("L2_CACHE_SIZE"),
                memory_bytes=int(call(driver.cuDeviceTotalMem, device)),
                driver_version=f"{release // 1000}.{release % 1000 // 10}",
            )
        )
    return found


def may_have_card() -> bool:
    """Whether asking the driver can be worth its time: without a device node there is no card."""
    return any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/dxg"))


def card_named_by_kernel_module() -> tuple[str, Arch] | None:
    """Name and architecture of the first card as the kernel module tells, without starting the driver, which
    takes long. None where it does not tell, the card is unknown, or the environment chooses among cards."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return None
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))[:1]:
        with contextlib.suppress(OSError):
            model = re.search(r"Model:\s*(.+)", information.read_text())
            words = model[1].split() if model else []
            for arch in ARCHS.values():
                if set(arch.product.split("/")) & set(words):
                    return model[1].strip(), arch
    return None
