import pytest

from kgen import build, toolchain
from kgen.arch import SM_90A
from kgen.build import compile_ptx, compile_ptx_nvrtc
from kgen.errors import BuildError, ToolchainError
from kgen.nvrtc import nvrtc_version

needs_nvrtc = pytest.mark.skipif(nvrtc_version() is None, reason="no NVRTC (pip install 'kgen[toolchain]')")


@needs_nvrtc
def test_a_generated_file_compiles_without_nvcc_and_driver(kernels, monkeypatch):
    monkeypatch.setattr(build, "nvcc_candidates", lambda: [])
    report = compile_ptx(kernels / "project", SM_90A)
    ptx = report.artifact.read_text()
    assert ".target sm_90a" in ptx and "scale_kernel" in ptx and ".param .align 128" in ptx


@needs_nvrtc
def test_an_error_is_quoted(monkeypatch):
    with pytest.raises(BuildError, match=r'bad\.cu: NVRTC: bad\.cu\(1\): error: identifier "y" is undefined'):
        compile_ptx_nvrtc("__global__ void k(int* x) { *x = y; }", SM_90A, name="bad.cu")


@needs_nvrtc
def test_host_code_that_is_not_hidden_is_refused():
    with pytest.raises(BuildError, match="host function"):
        compile_ptx_nvrtc("int launch() { return 0; }", SM_90A)


def test_without_nvrtc_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("kgen.nvrtc.nvrtc_version", lambda: None)
    with pytest.raises(ToolchainError, match=r"kgen\[toolchain\]"):
        compile_ptx_nvrtc("", SM_90A)


def test_without_headers_the_message_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr(toolchain, "nvcc_candidates", lambda: [])
    monkeypatch.setattr(toolchain, "wheel_roots", lambda: [])
    with pytest.raises(ToolchainError, match=r"cuda_runtime\.h"):
        toolchain.device_header_dirs()
