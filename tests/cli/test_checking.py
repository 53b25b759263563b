import json
from dataclasses import replace

import pytest

from kgen.protocol import program_of


@pytest.fixture
def broken(monkeypatch):
    """Every plan's empty (or full) barrier expects one arrival too many."""

    def wrong(plan):
        program = program_of(plan)
        *others, last = program.barriers
        return replace(program, barriers=(*others, replace(last, count=last.count + 1)))

    monkeypatch.setattr("kgen.protocol.program_of", wrong)
    monkeypatch.setenv("KGEN_TEMPLATE_CACHE", "0")  # which also keeps proofs


@pytest.mark.parametrize("target", ["9", "gemm:6", "sm_90a/gemm/1", "sm_100a/gemm/8"])
def test_presets_are_proven(kgen, target):
    done = kgen("check", target)
    assert done.code == 0
    assert ": proven: " in done.out and "hold: registers, bytes, " in done.out
    assert "the launcher refuses k < 1" in done.out


def test_a_project_and_its_spec_say_the_same(kgen, project):
    assert kgen("check", project).out == kgen("check", project / "spec.yaml").out
    data = json.loads(kgen("check", project, "--json").out)
    assert data["proven"] and not data["broken_facts"]
    assert data["certificate"] in (project / "README.md").read_text()


def test_a_violation_is_shown_and_drawn(kgen, broken, tmp_path):
    done = kgen("check", "sm_90a/gemm/9", "--svg", tmp_path / "why.svg")
    assert done.code == 1
    assert "deadlock" in done.out and "expects 17 arrivals (consumer: 8 warps of 2 CTAs)" in done.out
    assert "CTA 0 producer" in done.out and "change: " in done.out
    assert (tmp_path / "why.svg").read_text().startswith("<svg")
    data = json.loads(kgen("check", "sm_90a/gemm/9", "--json").out)
    assert data["violation"]["kind"] == "deadlock"


def test_nothing_is_drawn_of_a_proof(kgen, tmp_path):
    assert kgen("check", "sm_90a/gemm/9", "--svg", tmp_path / "why.svg").code == 0
    assert not (tmp_path / "why.svg").exists()


def test_render_refuses_what_may_hang(kgen, project, broken):
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("stages: 4", "stages: 3"))
    before = (project / "gemm_step9.cu").read_text()
    done = kgen("render", project)
    assert done.code == 1 and "deadlock" in done.err and "--unchecked" in done.err
    assert (project / "gemm_step9.cu").read_text() == before
    assert kgen("render", project, "--unchecked").code == 0
    assert (project / "gemm_step9.cu").read_text() != before
    assert "not proven: the barrier protocol was not checked" in (project / "README.md").read_text()
    assert kgen("diff", "--edits", project).code == 0


def test_build_refuses_what_may_hang(kgen, project, broken, monkeypatch):
    asked = []
    monkeypatch.setattr("kgen.build.build_library", lambda *a, **k: asked.append(a) or pytest.fail("built"))
    done = kgen("build", project)
    assert done.code == 1 and "deadlock" in done.err and not asked


def test_build_goes_on_unchecked(kgen, project, broken, monkeypatch):
    class Reached(Exception):
        pass

    def build(*arguments, **more):
        raise Reached

    monkeypatch.setattr("kgen.build.build_library", build)
    with pytest.raises(Reached):
        from kgen.cli import app

        app(["build", str(project), "--unchecked"], standalone_mode=False)


def test_an_unwritable_drawing_is_the_users_mistake(kgen, broken, tmp_path):
    assert kgen("check", "sm_90a/gemm/9", "--svg", tmp_path / "no" / "why.svg").code == 2


def test_a_certificate_follows_the_spec(kgen, project):
    before = (project / "README.md").read_text()
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("stages: 4", "stages: 3"))
    assert kgen("render", project).code == 0
    assert "k tiles {1, 2, 3, 4, 7}" in (project / "README.md").read_text() != before
