"""`kgen build`, `test` and `bench`: what is proven, what is not, and the exit codes that tell."""

import json
import time
from pathlib import Path

import pytest

from kgen.arch import SM_90A
from kgen.build import BuildReport
from kgen.device import Card
from kgen.errors import BuildError
from kgen.proving import prove
from kgen.ptxas import KernelUsage

H200 = Card("NVIDIA H200", (9, 0), 132, 50 << 20, 141 << 30, "13.0")
OK = '{"case": "a", "ok": true, "error": 0.5, "limit": 1.0, "seconds": 0.1, "note": ""}'
BAD = '{"case": "b", "ok": false, "error": NaN, "limit": 1.0, "seconds": 0.1, "note": "3 elements [0]"}'

# The body of a test file, what is printed, and the exit code.
RUNS = {
    "all right": (f"print('{OK}')", "all 1 cases are right", 0),
    "one wrong": (f"print('{OK}'); print('{BAD}'); sys.exit(1)", "FAILED: 1 of 2 cases are wrong", 1),
    "wrong but says nothing of it": (f"print('{BAD}')", "FAILED: 1 of 1", 1),
    "right but ends badly": (f"print('{OK}'); sys.exit('context lost')", "context lost", 1),
    "dies in a case": (
        "print('{\"running\": \"b\"}', flush=True); os.abort()", "the test ended in b", 1,
    ),
    "leaves a case unanswered": (
        f"print('{OK}'); print('{{\"running\": \"b\"}}')",
        "the test ended in b",
        1,
    ),
    "no case": ("pass", "the test file reported no case", 1),
    "gives up by itself": (
        "print('{\"running\": \"b\"}', flush=True); sys.exit(4)", "HUNG on b", 4,
    ),
    "hangs": ("print('{\"running\": \"64x64\"}', flush=True); time.sleep(60)", "HUNG on 64x64", 4),
    "hangs with its output closed": ("os.close(1); time.sleep(60)", "HUNG on no announced case", 4),
    "finds no card": ("print('{\"unproven\": \"busy\"}'); sys.exit(3)", "NOT PROVEN: busy", 3),
}  # fmt: skip


@pytest.fixture
def project(kgen, tmp_path):
    """Step 9 for the card that these tests pretend to have."""
    assert kgen("new", "gemm", "--step", 9, "--arch", "sm_90a").code == 0
    return tmp_path / "gemm_step9"


@pytest.fixture
def built(monkeypatch, tmp_path):
    """A compiler that succeeds at once, and a card."""
    report = BuildReport(tmp_path / "build" / "libx.so", 2.5, 300.0, (KernelUsage("gemm", registers=168),))
    monkeypatch.setattr("kgen.build.build_library", lambda directory, arch: report)
    monkeypatch.setattr("kgen.device.cards", lambda: ([H200], ""))


@pytest.mark.parametrize("case", RUNS)
def test_the_exit_code_tells(kgen, project, built, case):
    body, words, code = RUNS[case]
    (project / "test_gemm_step9.py").write_text(f"import os, sys, time\n{body}\n")
    start = time.monotonic()
    result = kgen("test", project, "--limit", 1.5)
    assert (result.code, words in result.out) == (code, True), result.out + result.err
    assert time.monotonic() - start < 20
    assert ("are right" in result.out.splitlines()[-1]) == (code == 0), "only a proof may sound like one"


def test_the_case_table_shows_errors_and_notes(kgen, project, built):
    (project / "test_gemm_step9.py").write_text(f"print('{OK}'); print('{BAD}'); raise SystemExit(1)\n")
    out = kgen("test", project).out
    assert "WRONG" in out and "nan" in out and "3 elements [0]" in out
    shown = json.loads(kgen("test", project, "--json").out)
    assert [c["error"] for c in shown["cases"]] == [0.5, None] and shown["exit_code"] == 1


def test_a_silent_grandchild_is_killed_too(tmp_path):
    script = tmp_path / "test_x.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    proof = prove(script, 1.0)
    assert proof.hung and proof.exit_code == 4
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the grandchild still runs")


@pytest.mark.parametrize(
    ("cards", "words"),
    [
        (([], "no CUDA driver"), "needs a card of sm_90a (H100/H200); no CUDA driver"),
        (
            ([Card("A100", (8, 0), 108, 1, 1, "13.0")], ""),
            "needs a card of sm_90a (H100/H200); the card here is A100",
        ),
    ],
)
def test_without_a_matching_card_nothing_is_called_right(kgen, project, built, monkeypatch, cards, words):
    monkeypatch.setattr("kgen.device.cards", lambda: cards)
    monkeypatch.setattr("kgen.proving.prove", lambda *a: pytest.fail("nothing can be run"))
    result = kgen("test", project, "--card")
    assert result.code == 3 and words in result.out and "nothing was run" in result.out
    assert "passed" not in result.out and "are right" not in result.out
    assert json.loads(kgen("test", project, "--card", "--json").out)["unproven"].startswith("needs a card")
    measured = kgen("bench", project)
    assert measured.code == 3 and "nothing measured: " in measured.out


def test_a_broken_gate_fails_the_test_without_a_card(kgen, project, monkeypatch):
    def refuse(directory, arch):
        raise BuildError("libx.so: the build rules are broken:\n  spilled")

    monkeypatch.setattr("kgen.build.build_library", refuse)
    monkeypatch.setattr("kgen.device.cards", lambda: ([], "no CUDA driver"))
    result = kgen("test", project)
    assert result.code == 1 and "spilled" in result.err and "NOT PROVEN" not in result.out


def test_build_reports_what_the_compiler_said(kgen, project, built, monkeypatch):
    out = kgen("build", project).out
    assert "168" in out and "2.50 s and 300 MB" in out
    assert json.loads(kgen("build", project, "--json").out)["peak_rss_mb"] == 300.0
    asked = []
    for name in ("compile_ptx", "compile_cubin", "build_executable"):
        report = BuildReport(project / "build" / name, 1.0, 1.0)
        monkeypatch.setattr(
            f"kgen.build.{name}",
            lambda d, arch, name=name, report=report: asked.append((name, arch)) or report,
        )
    for flag in ("--ptx", "--cubin", "--executable"):
        assert kgen("build", project, flag).code == 0
    assert asked == [("compile_ptx", SM_90A), ("compile_cubin", SM_90A), ("build_executable", SM_90A)]
    assert kgen("build", project, "--ptx", "--cubin").code == 2


def test_bench_hands_over_projects_shapes_and_types(kgen, project, built, monkeypatch, tmp_path):
    calls = []

    class Report:
        exit_code, shapes = 1, ("first", "last")

        def write_json(self, path):
            path.write_text("{}")

    def bench_gemm(libraries, sizes, dtype_in, dtype_out, reps, on_progress):
        calls.append((libraries, sizes, dtype_in, dtype_out, reps))
        return Report()

    monkeypatch.setattr("kgen.bench.bench_gemm", bench_gemm)
    monkeypatch.setattr("kgen.bench.table.print_report", lambda report, console: print("table"))
    monkeypatch.setattr("kgen.runtime.GemmLibrary", lambda path, name: f"library of {name}")
    monkeypatch.setattr("kgen.plot.write_ladder", lambda shape, path: path.write_text(shape))
    assert kgen("new", "gemm", "--step", 8, "--arch", "sm_90a").code == 0
    both = [tmp_path / "gemm_step8", project]
    result = kgen("bench", *both, "--shape", "1,2,3", "--shape", "64", "--json", "r.json", "--plot", "p.svg")
    assert result.code == 1 and "table" in result.out, "the report's exit code is the command's"
    libraries = [("gemm_step8", "library of gemm_step8"), ("gemm_step9", "library of gemm_step9")]
    assert calls == [(libraries, [(1, 2, 3), (64, 64, 64)], "bf16", "bf16", 100)]
    assert (tmp_path / "r.json").read_text() == "{}" and (tmp_path / "p.svg").read_text() == "last"
    kgen("bench", project)
    assert calls[1][1] == [(4096, 4096, 4096)], "without shapes, the problem of the spec"
    assert kgen("bench", project, "--shape", "1,2").code == 2
    assert kgen("new", "gemm", "--step", 8, "--arch", "sm_90a", "--set", "dtype.output=fp32", "-o", "f").code == 0
    assert kgen("bench", project, "f").code == 2, "unlike types are not compared"
