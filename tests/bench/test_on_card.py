"""The runtime, the baselines and the benchmark on a real card (any that nvcc has a target for)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kgen.baselines import WORKSPACE_BYTES, CublasGemmEx, CublasLt, CublasLtBest
from kgen.bench import bench_gemm
from kgen.bench.check import Checker, DeviceKernels, HostComparer
from kgen.bench.gpu_clock import GpuClock
from kgen.bench.operands import OperandSets, RandomBlock
from kgen.cublas_abi import find_cublas
from kgen.runtime import DeviceBuffer, GemmLibrary, GemmShape, NoDeviceError, Stream, copy, open_card

pytestmark = pytest.mark.gpu
NUMPY = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}


@pytest.fixture(scope="module")
def card():
    try:
        return open_card()
    except NoDeviceError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def stream(card):
    return Stream()


@pytest.fixture(scope="module")
def cublas():
    found, note = find_cublas()
    if found is None:
        pytest.skip(note)
    return found


@pytest.fixture(scope="module")
def naive(card, tmp_path_factory) -> Path:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    target = tmp_path_factory.mktemp("naive") / "libnaive.so"
    source = Path(__file__).with_name("naive.cu")
    arch = f"-arch={card.sm_arch}"
    subprocess.run(
        ["nvcc", arch, "-shared", "-Xcompiler", "-fPIC", "-o", str(target), str(source)], check=True
    )
    return target


def fetch(ptr: int, rows: int, cols: int, dtype: str) -> np.ndarray:
    host = np.empty((rows, cols), dtype=NUMPY[dtype])
    copy(host.ctypes.data, ptr, host.nbytes)
    return host.astype(np.float64)


@pytest.mark.parametrize(("dtype_in", "dtype_out"), [("bf16", "bf16"), ("fp16", "fp32"), ("bf16", "fp32")])
def test_baselines_and_plain_kernel_agree_with_the_host(card, stream, cublas, dtype_in, dtype_out):
    shape = GemmShape(200, 328, 136, lda=144, ldb=136, ldd=336, dtype_in=dtype_in, dtype_out=dtype_out)
    operands = OperandSets(shape, 2, RandomBlock(dtype_in, 3, elements=10_007))
    a = fetch(operands.a(1), shape.m, shape.lda, dtype_in)[:, : shape.k]
    b = fetch(operands.b(1), shape.n, shape.ldb, dtype_in)[:, : shape.k]
    assert 0.9 < a.std() < 1.1 and abs(a.mean()) < 0.1
    want = a @ b.T
    gemm = CublasGemmEx(cublas, stream.handle)
    lt = CublasLtBest(CublasLt(cublas, stream.handle, DeviceBuffer(WORKSPACE_BYTES)), shape)
    assert len(lt.ranks) > 0
    kernels = DeviceKernels(card, stream)
    checkers = [Checker(stream, gemm, kernels), Checker(stream, None, kernels)]
    for checker in checkers:
        checker.load(shape, operands.a(1), operands.b(1))
    with DeviceBuffer(shape.bytes_d) as d:
        launches = [gemm.prepare(shape, operands.a(1), operands.b(1), d.ptr)]
        launches += [lt.prepare(rank, operands.a(1), operands.b(1), d.ptr) for rank in lt.ranks]
        for launch in launches:
            d.fill_byte(0xFF, stream)
            launch()
            stream.synchronize()
            got = fetch(d.ptr, shape.m, shape.ldd, dtype_out)
            assert np.isnan(got[:, shape.n :]).all()
            error = np.linalg.norm(got[:, : shape.n] - want) / np.linalg.norm(want)
            assert error < (5e-3 if dtype_out == "bf16" else 1e-5)
            for checker in checkers:
                assert checker.error(shape, d.ptr) == pytest.approx(error, rel=0.05, abs=1e-6)
                reference = checker._reference.ptr
                on_host = HostComparer().compare(shape, d.ptr, reference)
                assert checker.error(shape, d.ptr) == pytest.approx(on_host, rel=1e-6, abs=1e-12)
        d.fill_byte(0xFF, stream)
        assert np.isnan(checkers[0].error(shape, d.ptr))


def test_the_clock_measures_device_time(card, stream):
    clock = GpuClock(stream)
    clock.fill(1e-3)
    clock.synchronize()
    start = clock.mark()
    clock.fill(20e-3)
    end = clock.mark()
    clock.synchronize()
    assert 15e-3 < clock.seconds_between(start, end) < 40e-3


def test_a_run(naive, cublas):
    names = ["right", "wrong", "refusing"]
    libraries = [(name, GemmLibrary(naive, name)) for name in names]
    report = bench_gemm(libraries, [(512, 768, 256), (130, 70, 50)], reps=50)
    for shape in report.shapes:
        rows = {row.label: row for row in shape.rows}
        assert [rows[name].status for name in names] == ["ok", "wrong", "refused"], report
        assert rows["cublasGemmEx"].status == "ok" and shape.best("cublaslt") is not None
        assert rows["right"].vs_cublas > 0 and rows["right"].vs_cublaslt > 0
    assert report.exit_code == 1
    assert report.shapes[0].clocks is not None, report.notes


def test_an_endless_and_a_stray_kernel_are_told_and_survived(naive, cublas):
    names = ["endless", "stray", "right"]
    libraries = [(name, GemmLibrary(naive, name)) for name in names]
    report = bench_gemm(libraries, [(256, 256, 256)], reps=20, limit_s=0.0)  # the budget alone: 20 s
    rows = {row.label: row for row in report.shapes[0].rows}
    assert [rows[name].status for name in names] == ["hung", "failed", "ok"], report
    assert report.exit_code == 4
