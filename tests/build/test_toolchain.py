import importlib
import importlib.metadata

import pytest

from kgen import toolchain
from kgen.errors import ToolchainError
from kgen.toolchain import PARTS, find_toolchain, wheel_roots


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No nvcc anywhere, until a test puts one."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(toolchain, "wheel_roots", lambda: [])
    # The versions of wheels that happen to be installed must not matter.
    monkeypatch.setattr(importlib.metadata, "version", _versions({}))
    return monkeypatch


def _versions(known):
    def version(name):
        if name not in known:
            raise importlib.metadata.PackageNotFoundError(name)
        return known[name]

    return version


def _wheels(root):
    """The files by which the wheels' parts are known."""
    for part in PARTS:
        path = root / part.paths[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def test_order_is_cuda_home_then_path_then_wheels(nowhere, fake_nvcc):
    home, path, wheels = (
        fake_nvcc("home", "13.0.1"),
        fake_nvcc("path", "13.0.2"),
        _wheels(fake_nvcc("w", "13.0.3")),
    )
    nowhere.setattr(toolchain, "wheel_roots", lambda: [wheels])
    nowhere.setenv("PATH", f"{path / 'bin'}:/bin:/usr/bin")
    nowhere.setenv("CUDA_HOME", str(home))
    found = find_toolchain()
    assert (found.source, found.version, found.nvcc) == ("CUDA_HOME", "13.0.1", home / "bin/nvcc")
    nowhere.setenv("CUDA_HOME", str(home / "moved"))  # stale: passed over
    assert (find_toolchain().source, find_toolchain().version) == ("PATH", "13.0.2")
    nowhere.setenv("PATH", "/nonexistent")
    found = find_toolchain()
    assert (found.source, found.version, found.root) == ("pip wheels", "13.0.3", wheels)


def test_only_the_wheels_need_a_library_path(nowhere, fake_nvcc):
    root = _wheels(fake_nvcc("w"))
    nowhere.setattr(toolchain, "wheel_roots", lambda: [root])
    found = find_toolchain()
    assert found.link_flags == (f"-L{found.root / 'lib'}",)
    nowhere.setenv("CUDA_HOME", str(fake_nvcc("home")))
    assert find_toolchain().link_flags == ()


def test_the_root_is_where_nvcc_says_and_not_where_a_wrapper_stands(nowhere, fake_nvcc, tmp_path):
    wrapper = fake_nvcc("bin_only", says=f"V13.0.88\n#$ TOP={tmp_path}/real/bin/..")
    nowhere.setenv("CUDA_HOME", str(wrapper))
    assert find_toolchain().include_dir == tmp_path / "real" / "include"


def test_no_nvcc_says_what_that_disables_and_how_to_get_it(nowhere):
    with pytest.raises(ToolchainError, match=r"no library or executable.*kgen\[toolchain\]"):
        find_toolchain()


def test_an_nvcc_that_does_not_run_is_named(nowhere, fake_nvcc):
    nowhere.setenv("CUDA_HOME", str(fake_nvcc("home", says="bad interpreter")))
    with pytest.raises(
        ToolchainError, match=r"home/bin/nvcc \(found through CUDA_HOME\) does not run: bad interp"
    ):
        find_toolchain()


@pytest.mark.parametrize("part", PARTS, ids=lambda p: p.paths[0])
def test_each_missing_wheel_is_named_with_what_it_disables(nowhere, fake_nvcc, part):
    root = _wheels(fake_nvcc("w"))
    (root / part.paths[0]).unlink()
    nowhere.setattr(toolchain, "wheel_roots", lambda: [root])
    with pytest.raises(ToolchainError) as e:
        find_toolchain()
    assert part.wheel in str(e.value) and part.disables in str(e.value)


def test_wheels_of_different_releases_are_refused(nowhere, fake_nvcc):
    root = _wheels(fake_nvcc("w"))
    nowhere.setattr(toolchain, "wheel_roots", lambda: [root])
    mixed = {"nvidia-cuda-nvcc": "13.0.88", "nvidia-nvvm": "13.5.37", "nvidia-cuda-crt": "13.0.88"}
    nowhere.setattr(importlib.metadata, "version", _versions(mixed))
    with pytest.raises(ToolchainError, match=r"nvidia-cuda-nvcc 13\.0, nvidia-nvvm 13\.5"):
        find_toolchain()
    nowhere.setattr(importlib.metadata, "version", _versions(mixed | {"nvidia-nvvm": "13.0.2"}))
    assert find_toolchain().version == "13.0.88"


def test_wheels_are_found_in_site_packages(monkeypatch, tmp_path):
    (tmp_path / "nvidia" / "cu99").mkdir(parents=True)
    (tmp_path / "nvidia" / "cuda_nvcc").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    assert wheel_roots()[0] == tmp_path / "nvidia" / "cu99"
