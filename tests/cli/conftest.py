from dataclasses import dataclass

import pytest

from kgen import cli


@dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def kgen(monkeypatch, capsys, tmp_path):
    """Runs a command as `kgen` would, in an empty directory; an exception that escapes fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "cache"))
    monkeypatch.setattr("kgen.device.may_have_card", lambda: False)

    def run(*arguments) -> Result:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return Result(ended.value.code or 0, out, err)

    return run


@pytest.fixture
def project(kgen, tmp_path):
    """A scaffolded gemm --step 9."""
    assert kgen("new", "gemm", "--step", 9).code == 0
    return tmp_path / "gemm_step9"
