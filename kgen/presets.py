"""The ready-made specs: `specs/<family>/<arch>/step<N>.yaml`, each one decision from the last.

They lie at the top of a checkout, or inside an installed package; nothing is inherited between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kgen.arch import ARCHS
from kgen.errors import UsageError

_MODELINE = re.compile(r"# yaml-language-server:[^\n]*\n")


@dataclass(frozen=True)
class Preset:
    """One file. `title` is its first comment line; `adds` what the title says after its colon."""

    family: str
    arch: str
    step: int
    path: Path
    title: str
    adds: str

    @property
    def reference(self) -> str:
        """How commands name it."""
        return f"{self.arch}/{self.family}/{self.step}"

    @property
    def text(self) -> str:
        """The spec as a project takes it: without the editor line, whose relative path ends with the
        folder."""
        return _MODELINE.sub("", self.path.read_text(encoding="utf-8"))


def spec_root() -> Path:
    """The folder of presets: inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "_data" / "specs"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "specs"


def presets(family: str | None = None, arch: str | None = None) -> list[Preset]:
    """All presets (of a family, of an architecture), architectures oldest first, steps in order."""
    root = spec_root()
    families = [family] if family else sorted(p.name for p in root.iterdir() if p.is_dir())
    found = []
    for f in families:
        for a in [arch] if arch else ARCHS:
            files = {_step(p): p for p in (root / f / a).glob("step*.yaml")}
            found += [_read(f, a, step, files[step]) for step in sorted(s for s in files if s is not None)]
    return found


def preset(family: str, step: int, arch: str | None = None) -> Preset:
    """One preset; without `arch` that of the newest architecture that has it.

    Raises UsageError, naming what there is, for an unknown family, architecture or step.
    """
    known = presets()
    names = list(dict.fromkeys(p.family for p in known))
    if family not in names:
        raise UsageError(f"unknown kernel family {family!r}; there is: {', '.join(names)}")
    if arch is not None and arch not in ARCHS:
        raise UsageError(f"unknown architecture {arch!r}; there is: {', '.join(ARCHS)}")
    ours = [p for p in known if p.family == family and arch in (None, p.arch)]
    match = [p for p in ours if p.step == step]
    if not match:
        where = f" on {arch}" if arch else ""
        raise UsageError(f"{family} has no step {step}{where}; there is: {_what_there_is(ours or known)}")
    return match[-1]


def preset_of_reference(text: str, family: str = "gemm", arch: str | None = None) -> Preset | None:
    """The preset that `gemm:8`, `sm_90a/gemm/8` or `8` names; None where the text is no such name.

    Raises UsageError where it is one, but of a preset that does not exist.
    """
    match = re.fullmatch(r"(?:(?:(?P<arch>sm_\w+)/)?(?P<family>[a-z]\w*)[:/])?(?:step)?(?P<step>\d+)", text)
    if match is None:
        return None
    return preset(match["family"] or family, int(match["step"]), match["arch"] or arch)


def _step(path: Path) -> int | None:
    match = re.fullmatch(r"step([1-9]\d*)", path.stem)
    return int(match[1]) if match else None


def _read(family: str, arch: str, step: int, path: Path) -> Preset:
    comments = (line[1:].strip() for line in path.read_text(encoding="utf-8").split("\n") if line[:1] == "#")
    title = next((c for c in comments if not c.startswith("yaml-language-server")), "")
    return Preset(family, arch, step, path, title, title.rpartition(": ")[2].rstrip("."))


def _what_there_is(found: list[Preset]) -> str:
    """`steps 1 to 9 on sm_90a`, an item for each family and architecture, ranges where nothing is missing."""
    groups: dict[tuple[str, str], list[int]] = {}
    for p in found:
        groups.setdefault((p.family, p.arch), []).append(p.step)
    said = []
    for (family, arch), steps in groups.items():
        whole = len(steps) > 2 and steps == list(range(steps[0], steps[-1] + 1))
        listed = f"{steps[0]} to {steps[-1]}" if whole else ", ".join(map(str, steps))
        said.append(f"{family} {listed} on {arch}")
    return "; ".join(said)
