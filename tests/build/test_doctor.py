import io
import json

import pytest
from rich.console import Console

from kgen import doctor
from kgen.device import Card
from kgen.doctor import Finding, diagnose, doctor_json, doctor_table
from kgen.errors import ToolchainError

NAMES = {
    "Python", "Python packages", "nvcc", "host compiler", "NVRTC", "driver and card", "cuBLAS, cuBLASLt",
    "compute-sanitizer", "cmake", "make",
}  # fmt: skip


def _named(name):
    return next(f for f in diagnose() if f.name == name)


def test_a_bare_machine_gets_a_full_report(monkeypatch):
    def no_nvcc():
        raise ToolchainError("no nvcc in [sight]")

    monkeypatch.setattr(doctor, "find_toolchain", no_nvcc)
    monkeypatch.setattr(doctor, "nvrtc_version", lambda: None)
    monkeypatch.setattr(doctor, "cards", lambda: ([], "no CUDA driver"))
    monkeypatch.setattr(doctor, "find_cublas", lambda: (None, "cuBLAS was not found"))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    findings = diagnose()
    assert {f.name for f in findings} == NAMES
    assert {f.name for f in findings if f.found} == {"Python", "Python packages"}
    assert all(f.disables and f.how_to_get and f.detail for f in findings)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(doctor_table(findings))
    text = console.export_text()
    assert "no nvcc in [sight]" in text and "kgen[toolchain]" in text, "brackets were taken for markup"


def test_table_tells_only_of_the_missing_how_to_get_it():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(
        doctor_table([Finding("a", True, "here", "A", "get a"), Finding("b", False, "gone", "B", "get b")])
    )
    text = console.export_text()
    assert "get b" in text and "get a" not in text


def test_json_has_every_field():
    assert json.loads(doctor_json([Finding("a", True, "here", "A", "get a")])) == [
        {"name": "a", "found": True, "detail": "here", "disables": "A", "how_to_get": "get a"}
    ]


@pytest.mark.parametrize(
    ("capability", "says"), [((9, 0), "runs sm_90a kernels"), ((8, 0), "runs none of sm_90a")]
)
def test_card_says_which_kernels_it_runs(monkeypatch, capability, says):
    card = Card("H", capability, 132, 50 << 20, 141 << 30, "13.0")
    monkeypatch.setattr(doctor, "cards", lambda: ([card], ""))
    finding = _named("driver and card")
    assert finding.found and says in finding.detail and "132 SMs, 141 GiB, L2 50 MiB" in finding.detail


def test_a_stale_cuda_home_and_a_second_nvcc_are_mentioned(monkeypatch, fake_nvcc):
    first, second = fake_nvcc("first"), fake_nvcc("second")
    monkeypatch.setenv("PATH", f"{second / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(first))
    assert f"not used: {second}/bin/nvcc (PATH)" in _named("nvcc").detail
    monkeypatch.setenv("CUDA_HOME", str(first / "gone"))
    assert f"CUDA_HOME={first}/gone has no bin/nvcc" in _named("nvcc").detail


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("rich", "kgen-no-such-package"))
    finding = _named("Python packages")
    assert not finding.found and "missing: kgen-no-such-package" in finding.detail
