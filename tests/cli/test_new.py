import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kgen.device import Card
from kgen.presets import all_presets, spec_root

CHECKOUT = spec_root().parent


def test_new_writes_the_golden_project(kgen, tmp_path):
    result = kgen("new", "gemm", "--step", 9)
    assert result.code == 0
    assert "sm_100a (no card here; this is the newest architecture with the preset)" in result.out
    made = {p.name: p.read_bytes() for p in (tmp_path / "gemm_step9").iterdir() if p.name != ".kgen.json"}
    golden = CHECKOUT / "generated" / "sm_100a" / "gemm_step9"
    assert made == {p.name: p.read_bytes() for p in golden.iterdir() if p.is_file()}


def test_new_takes_a_name_a_place_and_values(kgen, tmp_path):
    made = kgen(
        "new", "gemm", "--step", 7, "--name", "mine", "-o", "a/b",
        "--set", "pipeline.stages=3", "--set", "about=Mine: all mine",
    )  # fmt: skip
    assert made.code == 0
    spec = yaml.safe_load((tmp_path / "a/b/spec.yaml").read_text())
    assert spec["name"] == "mine" and spec["pipeline"]["stages"] == 3 and spec["about"] == "Mine: all mine"
    assert "# rows of tiles walked before the next column" in (tmp_path / "a/b/spec.yaml").read_text()
    assert "STAGES = 3;" in (tmp_path / "a/b/mine.cu").read_text()


def test_new_again_changes_nothing(kgen, project):
    before = {p: p.stat().st_mtime_ns for p in project.iterdir()}
    again = kgen("new", "gemm", "--step", 9)
    assert again.code == 0 and f"{len(before) - 1} unchanged" in again.out
    assert {p: p.stat().st_mtime_ns for p in project.iterdir()} == before


def test_new_does_not_replace_another_spec(kgen, project):
    result = kgen("new", "gemm", "--step", 9, "--set", "pipeline.stages=2")
    assert result.code == 1 and "differs from the spec to render, and is never overwritten" in result.err
    assert "stages: 2" not in (project / "spec.yaml").read_text()


def test_new_keeps_out_of_foreign_directories(kgen, tmp_path):
    (tmp_path / "there").mkdir()
    assert kgen("new", "gemm", "--step", 1, "-o", "there").code == 0, "an empty directory is fine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    result = kgen("new", "gemm", "--step", 1, "-o", "other")
    assert result.code == 1 and "it holds thesis.tex" in result.err and "-o" in result.err
    assert os.listdir(tmp_path / "other") == ["thesis.tex"]
    (tmp_path / "file").write_text("x")
    assert kgen("new", "gemm", "--step", 1, "-o", "file").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm", "--step", 12], "error: gemm has no step 12; there is: gemm 1 to 9 on sm_90a; gemm 1 to 9, "),
        (["gemm", "--step", 0], "error: gemm has no step 0; there is: gemm 1 to 9 on sm_90a; gemm 1 to 9, "),
        (["gemm", "--step", 3, "--arch", "sm_70"], "error: unknown architecture 'sm_70'; there is: sm_90a, sm_100a"),
        (["conv", "--step", 3], "error: unknown kernel family 'conv'; there is: gemm"),
        (["gemm"], "error: say what to scaffold, as in `kgen new gemm --step 9`; `kgen list` shows"),
        (
            ["gemm", "--step", 9, "--set", "stage=1"],
            "error: 'stage=1': unknown field (did you mean pipeline.stages?)",
        ),
        (["gemm", "--step", 9, "--set", "pipeline.stages=0"], "pipeline.stages: 0 is below 1 (nearest: 1)"),
        (["gemm", "--step", 9, "--set", "pipeline.stages=30"], "pipeline.stages: 30 stages x "),
        (["gemm", "--step", 9, "--name", "Bad"], "name: 'Bad' must be a C identifier"),
        (["gemm", "--step", "nine"], "--step"),
        (["gemm", "--stp", 9], "No such option"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(kgen, tmp_path, arguments, message):
    result = kgen("new", *arguments)
    assert result.code == 2 and message in result.err and "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        (Card("H200", (9, 0), 132, 1, 1, "13.0"), "sm_90a (the card here is H200)"),
        (Card("A100", (8, 0), 108, 1, 1, "13.0"), "sm_100a (the card here, A100, runs none of sm_90a, sm_100a;"),
        (None, "sm_100a (no card here; "),
    ],
)
def test_the_card_decides_and_the_reason_is_said(kgen, monkeypatch, card, reason):
    monkeypatch.setattr("kgen.device.may_have_card", lambda: True)
    monkeypatch.setattr("kgen.device.card_named_by_kernel_module", lambda: None)
    monkeypatch.setattr("kgen.device.card", lambda: card)
    assert reason in kgen("new", "gemm", "--step", 2).out


def test_a_known_name_saves_starting_the_driver(kgen, monkeypatch, tmp_path):
    from kgen import device

    information = tmp_path / "gpus" / "0000:01:00.0" / "information"
    information.parent.mkdir(parents=True)
    information.write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device, "Path", lambda p: Path(str(p).replace("/proc/driver/nvidia", str(tmp_path))))
    assert device.card_named_by_kernel_module()[0] == "NVIDIA H200"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert device.card_named_by_kernel_module() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    information.write_text("Model: \t\t NVIDIA GH200 480GB\n")
    assert device.card_named_by_kernel_module() is None, "the driver must be asked"


def test_list_shows_every_preset_with_what_it_changes(kgen):
    rows = json.loads(kgen("list", "--json").out)
    assert [(r["family"], r["arch"], r["step"]) for r in rows] == [
        (p.family, p.arch, p.step) for p in all_presets()
    ]
    assert rows[1]["changes"] == [{"field": "k_loop", "before": "once", "after": "loop"}]
    assert rows[0]["changes"] == [] and rows[8]["adds"] == "two consumers"
    table = kgen("list").out
    assert all(r["adds"] in table for r in rows) and "D[m,n] = sum over k of A[m,k] * B[n,k]" in table
    assert kgen("new", "--list").out == table


def test_new_takes_half_a_second_at_most(tmp_path):
    """Best of three, after one that fills the caches of compiled templates and of Python's own bytecode, as anybody's
    first run does. Processor time is what it takes on a machine that does nothing else; the clock on the wall would
    measure the neighbours."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path / "bytecode")

    def processor_seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    new, libraries = [], []
    for i in range(4):
        new.append(processor_seconds("-m", "kgen", "new", "gemm", "--step", "9", "-o", f"p{i}"))
        libraries.append(processor_seconds("-c", "import typer, typer._adapters, pydantic, jinja2, yaml"))
    # Importing the libraries takes 0.25 s where nothing else runs; a busy machine's second is worth less.
    busy = max(1.0, min(libraries[1:]) / 0.25)
    assert min(new[1:]) <= 0.5 * busy, (new, libraries)


def test_new_loads_no_driver_bindings_and_no_numerics(tmp_path):
    code = (
        "import sys, kgen.cli\n"
        "heavy = {'numpy', 'cuda', 'ml_dtypes', 'rich'}\n"
        "try: kgen.cli.main(['new', 'gemm', '--step', '9'])\n"
        "except SystemExit as e: assert not e.code\n"
        "print('LOADED', sorted({m.partition('.')[0] for m in sys.modules} & heavy))"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    if not Path("/dev/nvidiactl").exists():
        assert "LOADED []" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("directory", ["/proc/nowhere", "cache-is-a-file"])
def test_an_unusable_cache_directory_does_no_harm(kgen, monkeypatch, tmp_path, directory):
    (tmp_path / "cache-is-a-file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", directory)
    assert kgen("new", "gemm", "--step", 9, "-o", "out").code == 0


def test_shell_completion_is_offered_and_knows_presets_and_fields(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }

    def complete(line):
        words = {
            "_KGEN_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
        }
        code = "from kgen.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env={**environment, **words}, capture_output=True, text=True
        )
        return done.stdout.split()

    script = subprocess.run(
        [sys.executable, "-m", "kgen", "--show-completion", "bash"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert script.returncode == 0 and "complete -o default" in script.stdout and "kgen" in script.stdout
    assert "vendor" in complete("kgen ven")
    assert "pipeline.stages=" in complete("kgen new --set pipeline.s")
