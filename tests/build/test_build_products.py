"""Real compilations: each message that the gate stops is provoked with a kernel."""

import json
import subprocess

import pytest

from kgen import build
from kgen.arch import SM_90A
from kgen.build import (
    BuildReport,
    build_executable,
    build_library,
    compile_cubin,
    compile_ptx,
    nvcc_flags,
    project_source,
)
from kgen.errors import BuildError, ProjectError, ToolchainError, UsageError
from kgen.ptxas import KernelUsage, Note


def test_library_and_executable_from_one_compilation_of_the_kernel(kernels):
    project = kernels / "project"
    library = build_library(project, SM_90A)
    assert library.artifact == project / "build/libscale.so" and library.artifact.is_file()
    (kernel,) = library.kernels
    assert (kernel.short_name, kernel.spill_stores, kernel.smem) == ("scale_kernel", 0, 0)
    assert 0 < kernel.registers <= 32 and library.peak_rss_mb > 20 and not library.cached
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", library.artifact], capture_output=True, text=True
    )
    assert [line.split()[-1] for line in exported.stdout.splitlines()] == ["scale"]

    made = (project / "build/scale.o").stat().st_mtime_ns
    program = build_executable(project, SM_90A)
    assert (project / "build/scale.o").stat().st_mtime_ns == made, "the kernel was compiled twice"
    assert program.kernels == library.kernels
    assert subprocess.run([program.artifact]).returncode == 0
    assert json.loads((project / "build/report.json").read_text())["products"].keys() == {
        "scale.o",
        "scale",
        "libscale.so",
    }
    assert build_library(project, SM_90A).cached

    (project / "main.cu").write_text("int main() { return 5; }\n")
    assert build_library(project, SM_90A).cached, "main.cu is no part of the library"
    assert subprocess.run([build_executable(project, SM_90A).artifact]).returncode == 5


def test_a_product_is_rebuilt_when_and_only_when_something_changed(kernels):
    source = kernels / "setmaxnreg.cu"
    first = compile_ptx(source, SM_90A)
    assert not first.cached and "setmaxnreg.dec.sync.aligned.u32" in first.artifact.read_text()
    again = compile_ptx(source, SM_90A)
    assert again.cached and again.seconds == first.seconds
    assert not compile_ptx(source, SM_90A, flags=("-DOTHER",)).cached, "flags"
    first.artifact.write_text("damaged")
    assert not compile_ptx(source, SM_90A, flags=("-DOTHER",)).cached, "product"
    (kernels / "wgmma.h").write_text("// changed\n")
    assert not compile_ptx(source, SM_90A, flags=("-DOTHER",)).cached, "header"
    (kernels / "build/report.json").write_text("{")
    assert not compile_ptx(source, SM_90A, flags=("-DOTHER",)).cached, "report"
    source.write_text("this is no C++")
    with pytest.raises(BuildError, match=r"setmaxnreg\.ptx: the compiler refused"):
        compile_ptx(source, SM_90A)
    assert not first.artifact.exists(), "a stale product survives a failed build"


def test_ptx_names_no_directory(kernels):
    ptx = compile_ptx(kernels / "setmaxnreg.cu", SM_90A).artifact.read_text()
    assert ".loc" not in ptx and str(kernels) not in ptx


def test_a_register_split_that_holds_passes(kernels):
    (kernel,) = compile_cubin(kernels / "setmaxnreg.cu", SM_90A).kernels
    assert (kernel.registers, kernel.smem, kernel.barriers) == (168, 256, 1)


def test_a_wgmma_ring_that_holds_passes(kernels):
    assert compile_cubin(kernels / "wgmma_variants.cu", SM_90A, flags=("-DFAULT=none",)).notes == ()


BROKEN = {
    "spill": ("spill.cu", (), r"Registers are spilled to local memory in function 'spilling'.*smaller tile"),
    "setmaxnreg ignored": (
        "setmaxnreg.cu",
        ("-DNO_BOUNDS",),
        r"\(C7508\).*'setmaxnreg' ignored.*__launch_bounds__",
    ),
    "serialised by a read in flight": (
        "wgmma_variants.cu",
        ("-DFAULT=in_flight_read",),
        r"\(C7514\).*wgmma\.mma_async instructions are serialized.*tensor cores idle",
    ),
    "serialised by a call": (
        "wgmma_variants.cu",
        ("-DFAULT=call",),
        r"\(C7510\).*serialized due to wgmma pipeline crossing function boundary.*tensor cores idle",
    ),
    "missing fence": (
        "wgmma_variants.cu",
        ("-DFAULT=no_fence",),
        r"\(C7519\) warpgroup\.arrive is injected.*fence",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_gate_stops(kernels, case):
    source, flags, message = BROKEN[case]
    with pytest.raises(BuildError, match="(?s)" + message):
        compile_cubin(kernels / source, SM_90A, flags=flags)
    assert not list((kernels / "build").glob("*.cubin"))
    assert (kernels / "build" / f"{source[:-3]}.cubin.log").is_file()


def test_without_strict_a_spill_is_reported_and_the_gate_says_so(kernels):
    report = compile_cubin(kernels / "spill.cu", SM_90A, strict=False)
    assert report.artifact.is_file() and report.kernels[0].spill_stores > 0
    with pytest.raises(BuildError, match="Registers are spilled"):
        report.gate()


def test_a_host_warning_stops_the_build(kernels):
    with open(kernels / "project/scale.cu", "a") as f:
        f.write('extern "C" int scale_count(int unused) { return 1; }\n')
    with pytest.raises(BuildError, match="unused parameter"):
        build_library(kernels / "project", SM_90A)


def _report(tmp_path, *, notes=(), kernels=()):
    return BuildReport(tmp_path / "k.cubin", 1.0, 100.0, kernels, notes)


def test_gate_without_a_compiler(tmp_path):
    arrive = Note("ptxas info : (C7519) warpgroup.arrive is injected", "info", "C7519", "")
    unknown = Note("ptxas info : (C7999) something new", "info", "C7999", "")
    _report(tmp_path, notes=(Note("ptxas info : Overriding", "info", "", ""),)).gate()
    _report(tmp_path, notes=(arrive,)).gate(allow={"C7519"})
    with pytest.raises(BuildError, match="C7999"):
        _report(tmp_path, notes=(arrive, unknown)).gate(allow={"C7519"})
    with pytest.raises(BuildError, match="k: 0 bytes spill stores, 4 bytes spill loads"):
        _report(tmp_path, kernels=(KernelUsage("k", spill_loads=4),)).gate()


def test_report_survives_json(tmp_path):
    report = _report(
        tmp_path, kernels=(KernelUsage("k", registers=9),), notes=(Note("l", "info", "C1", "w"),)
    )
    assert BuildReport.from_json(json.loads(json.dumps(report.to_json())), tmp_path) == report


def test_flags_name_the_exact_architecture_and_warnings_are_errors():
    assert "arch=compute_90a,code=sm_90a" in nvcc_flags(SM_90A)
    assert "all-warnings" in nvcc_flags(SM_90A) and "all-warnings" not in nvcc_flags(SM_90A, strict=False)


def test_what_is_no_project(tmp_path):
    with pytest.raises(UsageError, match="no such project"):
        project_source(tmp_path / "absent")
    with pytest.raises(ProjectError, match="found: none"):
        project_source(tmp_path)
    (tmp_path / "main.cu").touch()
    (tmp_path / "a.cu").touch()
    assert project_source(tmp_path) == tmp_path / "a.cu"
    (tmp_path / "b.cu").touch()
    with pytest.raises(ProjectError, match=r"found: a\.cu, b\.cu"):
        project_source(tmp_path)


def test_an_executable_needs_main(kernels):
    with pytest.raises(ProjectError, match=r"no main\.cu"):
        build_executable(kernels / "spill.cu", SM_90A)


def test_a_compiler_that_hangs_is_stopped_with_its_children(kernels, fake_nvcc, monkeypatch):
    root = fake_nvcc("slow")
    (root / "bin/nvcc").write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo V13.0.88;; *dryrun*) ;; *) sleep 60;; esac\n'
    )
    monkeypatch.setenv("CUDA_HOME", str(root))
    monkeypatch.setattr(build, "TIMEOUT_S", 0.5)
    with pytest.raises(BuildError, match=r"stopped after 0\.5 s"):
        compile_cubin(kernels / "spill.cu", SM_90A)


def test_no_compiler_at_all(kernels, monkeypatch):
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("kgen.toolchain.wheel_roots", lambda: [])
    with pytest.raises(ToolchainError, match="no nvcc"):
        build_library(kernels / "project", SM_90A)
