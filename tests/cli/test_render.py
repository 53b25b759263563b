"""Re-rendering: only what changed is written, hand edits are safe, nothing is lost."""

import json
import os
import shutil

import pytest

from kgen.errors import ProjectError
from kgen.project import MANIFEST, edits, write_project
from kgen.spec.edit import set_values


def set_stages(project, stages):
    spec = project / "spec.yaml"
    spec.write_text(set_values(spec.read_text(), [f"pipeline.stages={stages}"]))


def contents(directory):
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_render_writes_only_what_changed(kgen, project):
    set_stages(project, 3)
    before = {p.name: p.stat().st_mtime_ns for p in project.iterdir()}
    report = json.loads(kgen("render", project, "--json").out)
    assert "gemm_step9.cu" in report["updated"] and "gate.sh" in report["unchanged"]
    assert report["created"] == report["removed"] == [] and report["saved"] == {}
    after = {p.name: p.stat().st_mtime_ns for p in project.iterdir()}
    assert {n for n in after if after[n] != before[n]} == {*report["updated"], MANIFEST}
    assert "STAGES = 3;" in (project / "gemm_step9.cu").read_text()


def test_the_directory_defaults_to_the_current_one(kgen, project, monkeypatch):
    monkeypatch.chdir(project)
    assert kgen("render").out.startswith(".: ")


def test_a_hand_edit_stops_everything_and_is_named(kgen, project):
    (project / "gemm_step9.cu").write_text("mine\n")
    (project / "README.md").write_text("mine too\n")
    set_stages(project, 3)
    before = contents(project)
    result = kgen("render", project)
    assert result.code == 1 and contents(project) == before
    assert "gemm_step9.cu (edited by hand)" in result.err and "README.md (edited by hand)" in result.err
    assert "Makefile" not in result.err
    assert f"kgen diff --edits {project}" in result.err and f"kgen render --force {project}" in result.err


def test_the_named_diff_shows_the_edit(kgen, project):
    path = project / "gemm_step9.cu"
    path.write_text(path.read_text().replace("#define DEVICE", "// mine\n#define DEVICE"))
    shown = kgen("diff", "--edits", project)
    assert shown.code == 0
    assert [line for line in shown.out.splitlines() if line[:1] == "+"] == [f"+++ {path}", "+// mine"]
    assert kgen("diff", "--edits", project, "--json").out.count("+// mine") == 1


def test_force_keeps_every_edit_beside_its_file(kgen, project):
    path = project / "gemm_step9.cu"
    generated = path.read_text()
    for edit in ("first\n", "second\n", "third\n"):
        path.write_text(edit)
        result = kgen("render", project, "--force")
        assert result.code == 0 and "your gemm_step9.cu is kept as gemm_step9.cu.orig" in result.out
        assert path.read_text() == generated
    kept = [(project / f"gemm_step9.cu.orig{n}").read_text() for n in ("", ".1", ".2")]
    assert kept == ["first\n", "second\n", "third\n"]


def test_force_does_not_touch_files_that_are_not_generated(kgen, project):
    (project / "notes.txt").write_text("mine")
    assert kgen("render", project, "--force").code == 0
    assert (project / "notes.txt").read_text() == "mine"


def test_a_rename_removes_what_is_not_generated_any_more_unless_edited(kgen, project):
    spec = project / "spec.yaml"
    spec.write_text(spec.read_text().replace("name: gemm_step9", "name: other"))
    (project / "gemm_step9.h").write_text("edited\n")
    result = kgen("render", project)
    assert result.code == 0 and "removed  gemm_step9.cu" in result.out
    assert "gemm_step9.h belongs to an earlier spec and was edited by hand, so it stays" in result.out
    names = {p.name for p in project.iterdir()}
    assert {"other.cu", "other.h", "gemm_step9.h"} <= names and "gemm_step9.cu" not in names
    assert kgen("render", project).out.splitlines()[0].endswith("9 unchanged")


def test_a_deleted_file_comes_back(kgen, project):
    (project / "Makefile").unlink()
    assert "created  Makefile" in kgen("render", project).out


def test_an_edit_that_equals_the_new_text_is_no_edit(kgen, project):
    set_stages(project, 3)
    twin = project.parent / "twin"
    shutil.copytree(project, twin)
    assert kgen("render", twin).code == 0
    shutil.copy(twin / "gemm_step9.cu", project / "gemm_step9.cu")
    assert kgen("render", project).code == 0


def test_the_record_is_the_same_everywhere(kgen, tmp_path):
    for place in ("a", "deep/down/b"):
        assert kgen("new", "gemm", "--step", 4, "-o", place).code == 0
    a, b = (tmp_path / p / MANIFEST for p in ("a", "deep/down/b"))
    assert a.read_bytes() == b.read_bytes()
    recorded = json.loads(a.read_text())["files"]
    assert list(recorded) == sorted(recorded) and "spec.yaml" not in recorded
    assert set(recorded) == {p.name for p in (tmp_path / "a").iterdir()} - {"spec.yaml", MANIFEST}


@pytest.mark.parametrize("text", ["{", '{"files": [], "format": 1}', '{"files": {"../x": "0"}, "format": 1}'])
def test_a_broken_record_is_said_and_nothing_written(kgen, project, text):
    (project / MANIFEST).write_text(text)
    before = contents(project)
    result = kgen("render", project)
    assert result.code == 1 and f"{MANIFEST}: cannot be read" in result.err and contents(project) == before


def test_a_spec_elsewhere_renders_to_its_name(kgen, project, tmp_path):
    shutil.copy(project / "spec.yaml", tmp_path / "my.yaml")
    set_stages(project, 3)
    assert kgen("render", "my.yaml", "-o", "out").code == 0
    assert (tmp_path / "out" / "spec.yaml").read_text() == (tmp_path / "my.yaml").read_text()
    clash = kgen("render", "my.yaml")
    assert clash.code == 1 and "spec.yaml differs from the spec to render" in clash.err


def test_the_line_ends_of_an_editor_are_the_users(kgen, project):
    spec = project / "spec.yaml"
    theirs = spec.read_bytes().replace(b"\n", b"\r\n")
    spec.write_bytes(theirs)
    assert "9 unchanged" in kgen("render", project).out
    assert spec.read_bytes() == theirs


def test_a_file_that_was_never_ours_is_not_replaced(kgen, project, tmp_path):
    shutil.copy(project / "spec.yaml", tmp_path / "my.yaml")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "Makefile").write_text("theirs")
    result = kgen("render", "my.yaml", "-o", "out")
    assert result.code == 1 and "Makefile (not written by kgen)" in result.err
    assert "choose another directory (-o)" in result.err, "there is no spec yet that a diff could render"
    assert contents(tmp_path / "out") == {"Makefile": b"theirs"}
    assert kgen("render", "my.yaml", "-o", "out", "--force").code == 0
    assert (tmp_path / "out" / "Makefile.orig").read_text() == "theirs"


def test_a_spec_in_its_own_directory_is_a_project(kgen, project, tmp_path):
    (tmp_path / "fresh").mkdir()
    shutil.copy(project / "spec.yaml", tmp_path / "fresh")
    assert kgen("render", tmp_path / "fresh" / "spec.yaml").code == 0
    assert (tmp_path / "fresh" / "gemm_step9.cu").is_file()


def test_mistakes_are_located_and_nothing_is_written(kgen, project):
    set_stages(project, 99)
    before = contents(project)
    result = kgen("render", project)
    assert (result.code, result.out) == (2, "") and contents(project) == before
    assert result.err.startswith(f"{project}/spec.yaml:") and "99 is above 32 (nearest: 32)" in result.err
    set_stages(project, 31)
    planned = kgen("render", project)
    assert planned.code == 2 and "pipeline.stages: 31 stages x " in planned.err
    assert planned.err.startswith(f"{project}/spec.yaml:"), "a plan's refusal is located in the file"


@pytest.mark.parametrize("target", ["nowhere", "nowhere.yaml", "."])
def test_nothing_to_render_is_a_usage_error(kgen, target):
    result = kgen("render", target)
    assert result.code == 2 and result.err.startswith("error: ")


def test_a_failure_while_writing_leaves_the_old_project(project, monkeypatch):
    before = contents(project)
    files = {p: "new\n" for p in before if p not in (MANIFEST, "spec.yaml")}
    real, calls = os.chmod, []

    def full_disk(path, mode):
        calls.append(path)
        if len(calls) == 4:
            raise OSError(28, "No space left on device", str(path))
        return real(path, mode)

    monkeypatch.setattr(os, "chmod", full_disk)
    with pytest.raises(ProjectError, match="No space left"):
        write_project(files, project)
    assert contents(project) == before


def test_scripts_can_be_executed(project):
    assert os.access(project / "gate.sh", os.X_OK) and not os.access(project / "Makefile", os.X_OK)


def test_edits_is_empty_for_an_untouched_project(project):
    files = {p: data.decode() for p, data in contents(project).items() if p != MANIFEST}
    assert edits(files, project) == ""


def test_all_writes_the_goldens_and_removes_stale_ones(kgen, tmp_path):
    assert kgen("render", "--all", "-o", "g").code == 0
    first = contents(tmp_path / "g")
    stale = tmp_path / "g" / "sm_90a" / "old"
    shutil.copytree(tmp_path / "g/sm_90a/gemm_step1", stale)
    (tmp_path / "g/sm_90a/gemm_step2/stray.h").write_text("x")
    (tmp_path / "g/sm_90a/gemm_step3/main.cu").write_text("x")
    (tmp_path / "g/sm_90a/gemm_step3/build").mkdir()
    (tmp_path / "g/sm_90a/gemm_step3/build/lib.so").write_text("built")
    report = json.loads(kgen("render", "--all", "-o", "g", "--json").out)
    assert report["written"] == ["sm_90a/gemm_step3/main.cu"]
    assert sorted(report["removed"]) == ["sm_90a/gemm_step2/stray.h", "sm_90a/old"]
    after = contents(tmp_path / "g")
    assert after.pop("sm_90a/gemm_step3/build/lib.so") and after == first
