"""`bench_gemm` and its worker as they are, on a card made of host memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgen.bench import Policy, bench_gemm
from kgen.bench.__main__ import main, parse_libraries, parse_shape
from kgen.errors import UsageError
from kgen.runtime import DeviceError, GemmLibrary

HOST_WORKER = (sys.executable, str(Path(__file__).with_name("host_card.py")))
QUICK = Policy(
    settle_least_s=0.01, settle_most_s=0.05, settle_window_s=0.005, budget_s=0.5, batch_target_s=0.0
)


@pytest.fixture
def bench(gemm_library, cublas_folder, monkeypatch):
    monkeypatch.setenv("KGEN_CUBLAS_DIR", str(cublas_folder))

    def run(names, shapes=((24, 40, 32),), limit_s=20.0, **more):
        libraries = [(name, GemmLibrary(gemm_library, name)) for name in names]
        return bench_gemm(
            libraries, shapes, reps=12, policy=QUICK, limit_s=limit_s, worker=HOST_WORKER, **more
        )

    return run


def rows_of(report, shape=0):
    return {row.label: row for row in report.shapes[shape].rows}


def test_a_right_library_is_timed_beside_the_baselines(bench):
    seen = []
    report = bench(["right"], [(24, 40, 32), (7, 9, 5)], ld_multiple=8, on_progress=seen.append)
    assert report.exit_code == 0, report.notes
    assert report.environment.cublas_version == "13.1.2"
    for index in (0, 1):
        rows = rows_of(report, index)
        assert list(rows)[:2] == ["right", "cublasGemmEx"]
        assert len([r for r in rows.values() if r.kind == "cublaslt"]) == 3
        assert all(r.status == "ok" and r.error < 4e-3 for r in rows.values())
        assert rows["right"].vs_cublaslt > 0 and rows["right"].vs_cublas > 0
    result = report.shapes[0]
    assert result.operand_sets >= 3 and result.operand_bytes >= 4 * (64 << 10)
    assert result.checked_buffers >= 5 * 3 and result.rounds >= 10
    assert "24x40x32: first launch of right" in seen


@pytest.mark.parametrize("name", ["short_k", "unwritten", "later_wrong", "once"])
def test_a_wrong_library_gets_no_speed(bench, name):
    report = bench([name, "right"])
    rows = rows_of(report)
    assert rows[name].status == "wrong" and rows[name].median_s is None and rows[name].tflops is None
    assert rows["right"].status == "ok"
    assert report.exit_code == 1


def test_a_refusal_is_told_and_nothing_else_lost(bench):
    report = bench(["refusing", "right"])
    rows = rows_of(report)
    assert rows["refusing"].status == "refused" and "invalid argument" in rows["refusing"].note
    assert list(rows)[:2] == ["refusing", "right"]
    assert report.exit_code == 0


def test_all_refusing_is_no_success(bench):
    report = bench(["refusing"])
    assert report.exit_code == 1 and rows_of(report)["refusing"].status == "refused"


def test_a_hang_names_the_contestant_and_the_shape_and_the_rest_goes_on(bench):
    report = bench(["right", "hanging"], [(8, 8, 8), (16, 8, 8)], limit_s=2.0)
    assert report.exit_code == 4
    for index in (0, 1):
        rows = rows_of(report, index)
        assert rows["hanging"].status == "hung" and rows["right"].status == "ok"
    assert any(note.startswith("16x8x8: hanging hung") for note in report.notes)


def test_a_crash_names_the_contestant_and_the_rest_goes_on(bench):
    report = bench(["crashing", "right"])
    rows = rows_of(report)
    assert rows["crashing"].status == "failed" and rows["right"].status == "ok"
    assert report.exit_code == 1


def test_without_cublas_and_without_nvrtc_nothing_is_believed(bench, monkeypatch):
    monkeypatch.delenv("KGEN_CUBLAS_DIR")
    with pytest.raises(DeviceError, match="unchecked speed is not reported"):
        bench(["right"])


def test_a_worker_that_cannot_start_is_told(gemm_library):
    library = GemmLibrary(gemm_library, "right")
    dying = (sys.executable, "-c", "import sys; print('no such thing'); sys.exit(5)")
    with pytest.raises(DeviceError, match="the worker left with 5 at once: no such thing"):
        bench_gemm([("right", library)], [(8, 8, 8)], worker=dying, limit_s=5.0)


def test_a_card_that_does_not_open_ends_all_shapes(gemm_library):
    library = GemmLibrary(gemm_library, "right")
    opening = '{"type": "at", "index": 0, "phase": "opening the card", "label": ""}\n'
    silent = (
        sys.executable,
        "-c",
        f"import os, sys, time; os.write(int(sys.argv[1]), {opening.encode()!r}); time.sleep(60)",
    )
    report = bench_gemm(
        [("right", library)], [(8, 8, 8), (9, 9, 9)], policy=QUICK, worker=silent, limit_s=0.5
    )
    assert report.exit_code == 4
    assert [shape.problem for shape in report.shapes] == [
        "hung while opening the card: the card does not open"
    ] * 2


def test_labels_and_lists_are_checked(gemm_library):
    right = GemmLibrary(gemm_library, "right")
    with pytest.raises(UsageError, match="must differ"):
        bench_gemm([("a", right), ("a", right)], [(8, 8, 8)])
    with pytest.raises(UsageError, match="baselines"):
        bench_gemm([("cuBLAS 2", right)], [(8, 8, 8)])
    with pytest.raises(UsageError, match="nothing to measure"):
        bench_gemm([("a", right)], [])
    with pytest.raises(UsageError, match="at least 1"):
        bench_gemm([("a", right)], [(8, 0, 8)])


def test_command_line_of_libraries():
    found = parse_libraries(["x/libone.so", "step 2=y/libtwo.so", "second", "three.so"])
    assert [(label, str(path), name) for label, path, name in found] == [
        ("one", "x/libone.so", "one"),
        ("step 2", "y/libtwo.so", "second"),
        ("three", "three.so", "three"),
    ]
    with pytest.raises(UsageError, match="before a name"):
        parse_libraries(["second"])


def test_command_line_of_shapes():
    assert parse_shape("4096,14336,4096") == (4096, 14336, 4096)
    assert parse_shape("8192") == (8192, 8192, 8192)


def test_without_a_card_the_exit_code_says_so(gemm_library, capsys):
    """On a machine that has a card this asks too little to matter; the code is then that of a run."""
    code = main([str(gemm_library), "right", "--shape", "8,8,8", "--reps", "1"])
    if code == 3:
        assert "no usable card" in capsys.readouterr().err
    else:
        pytest.skip("this machine has a card")


def test_a_missing_library_is_a_usage_error(capsys):
    assert main(["nowhere.so", "--shape", "8"]) == 2
    assert "no such library" in capsys.readouterr().err
