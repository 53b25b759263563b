from types import SimpleNamespace

import pytest

from kgen import device
from kgen.arch import SM_90A
from kgen.device import Card, card, cards

driver = pytest.importorskip("cuda.bindings.driver")

OK = driver.CUresult.CUDA_SUCCESS
ATTRIBUTE = driver.CUdevice_attribute
VALUES = {
    ATTRIBUTE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 9,
    ATTRIBUTE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: 0,
    ATTRIBUTE.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 132,
    ATTRIBUTE.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: 50 << 20,
}


def _driver(**changed):
    """A driver with two cards, in the shapes that the bindings return."""
    calls = {
        "cuInit": lambda flags: (OK,),
        "cuDriverGetVersion": lambda: (OK, 13020),
        "cuDeviceGetCount": lambda: (OK, 2),
        "cuDeviceGet": lambda ordinal: (OK, ordinal),
        "cuDeviceGetName": lambda size, dev: (OK, f"Card {dev}".encode().ljust(size, b"\0")),
        "cuDeviceTotalMem": lambda dev: (OK, 141 << 30),
        "cuDeviceGetAttribute": lambda attribute, dev: (OK, VALUES[attribute]),
    }
    return SimpleNamespace(CUresult=driver.CUresult, CUdevice_attribute=ATTRIBUTE, **(calls | changed))


def test_fields_of_a_card():
    first, second = device._cards(_driver())
    assert first == Card("Card 0", (9, 0), 132, 50 << 20, 141 << 30, "13.2")
    assert second.name == "Card 1" and first.arch is SM_90A


def test_a_near_relative_is_no_match():
    assert Card("c", (9, 1), 1, 1, 1, "13.0").arch is None


@pytest.mark.parametrize("status", ["CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"])
def test_a_driver_that_refuses_is_no_error(monkeypatch, status):
    refusing = _driver(cuInit=lambda flags: (getattr(driver.CUresult, status),))
    monkeypatch.setattr("cuda.bindings.driver.cuInit", refusing.cuInit)
    assert card() is None
    assert cards() == ([], f"the driver answers {status}")


def test_no_driver_is_no_error(monkeypatch):
    def missing(flags):
        raise RuntimeError("Failure finding libcuda.so\nand more")

    monkeypatch.setattr("cuda.bindings.driver.cuInit", missing)
    assert card() is None
    assert cards()[1] == "no CUDA driver: Failure finding libcuda.so"
