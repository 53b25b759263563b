"""The ready-made specs: `specs/<family>/<arch>/step<N>.yaml`, each one decision from the last, and beside them
`<word>.yaml`, each named for what it adds to the preset its comment `# Builds on <preset>.` names.

They lie at the top of a checkout, or inside an installed package; nothing is inherited between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kgen.arch import ARCHS
from kgen.errors import UsageError
from kgen.spec.messages import nearest

_MODELINE = re.compile(r"# yaml-language-server:[^\n]*\n")


@dataclass(frozen=True)
class Preset:
    """One file. `title` is its first comment line; `adds` what the title says after its colon. `step` is its number on
    the ladder, None for one that has a word for a name. `base` names the preset it builds on, if any."""

    family: str
    arch: str
    step: int | None
    path: Path
    title: str
    adds: str
    base: str = ""

    @property
    def name(self) -> str:
        """Its number or its word."""
        return self.path.stem if self.step is None else str(self.step)

    @property
    def label(self) -> str:
        """`step 8`, `clc`."""
        return self.name if self.step is None else f"step {self.name}"

    @property
    def option(self) -> str:
        """How `kgen new` is told to take it."""
        return f"--preset {self.name}" if self.step is None else f"--step {self.name}"

    @property
    def reference(self) -> str:
        """How commands name it."""
        return f"{self.arch}/{self.family}/{self.name}"

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
    """The steps of every ladder (of a family, of an architecture), architectures oldest first, steps in order."""
    return [p for p in all_presets(family, arch) if p.step is not None]


def named_presets(family: str | None = None, arch: str | None = None) -> list[Preset]:
    """Those that have a word for a name; what one builds on comes before it."""
    return [p for p in all_presets(family, arch) if p.step is None]


def all_presets(family: str | None = None, arch: str | None = None) -> list[Preset]:
    """Both, by family and architecture: the steps first."""
    root = spec_root()
    families = [family] if family else sorted(p.name for p in root.iterdir() if p.is_dir())
    return [p for f in families for a in ([arch] if arch else ARCHS) for p in _in_folder(f, a, root / f / a)]


def preset(family: str, name: int | str, arch: str | None = None) -> Preset:
    """One preset, by number or word; without `arch` that of the newest architecture that has it.

    Raises UsageError, naming what there is, for an unknown family, architecture, step or word.
    """
    known = all_presets()
    names = list(dict.fromkeys(p.family for p in known))
    if family not in names:
        raise UsageError(f"unknown kernel family {family!r}; there is: {', '.join(names)}")
    if arch is not None and arch not in ARCHS:
        raise UsageError(f"unknown architecture {arch!r}; there is: {', '.join(ARCHS)}")
    ours = [p for p in known if p.family == family and arch in (None, p.arch)]
    match = [p for p in ours if p.name == str(name)]
    if not match:
        where = f" on {arch}" if arch else ""
        if str(name).isdigit():
            raise UsageError(f"{family} has no step {name}{where}; there is: {_what_there_is(ours or known)}")
        near = nearest(str(name), [p.name for p in ours if p.step is None])
        there = near or f"there is: {_what_there_is(ours or known)}"
        raise UsageError(f"{family} has no preset {str(name)!r}{where} ({there})")
    return match[-1]


def base_of(found: Preset) -> Preset | None:
    """The preset that `found` builds on: a step on the one before, a named one on what its comment says."""
    if found.step == 1:
        return None
    base = str(found.step - 1) if found.step else found.base
    return preset(found.family, base, found.arch) if base else None


def preset_of_reference(text: str, family: str = "gemm", arch: str | None = None) -> Preset | None:
    """The preset that `gemm:8`, `sm_90a/gemm/8`, `8`, `gemm:clc` or `clc` names; None where the text is no such name.

    Raises UsageError where it is one, but of a preset that does not exist. A word alone is a name only if it exists.
    """
    match = re.fullmatch(
        r"(?:(?:(?P<arch>sm_\w+)/)?(?P<family>[a-z]\w*)[:/])?(?:(?:step)?(?P<step>\d+)|(?P<word>[a-z]\w*))", text
    )
    if match is None:
        return None
    arch, word = match["arch"] or arch, match["word"]
    # `a/b` may be a path as well; with a colon or an architecture the text can be nothing else.
    certain = not word or match["arch"] or ":" in text
    if not certain and not any(p.name == word for p in named_presets(None, arch if arch in ARCHS else None)):
        return None
    return preset(match["family"] or family, word or int(match["step"]), arch)


def _in_folder(family: str, arch: str, folder: Path) -> list[Preset]:
    """The presets of one folder: steps by number, then words, each behind what it builds on."""
    found = [_read(family, arch, p) for p in sorted(folder.glob("*.yaml"))]
    ordered = sorted((p for p in found if p.step is not None), key=lambda p: p.step)
    left = [p for p in found if p.step is None]
    while left:
        done = {p.name for p in ordered}
        ready = [p for p in left if not p.base or p.base in done] or left  # a base that is missing holds up nothing
        ready.sort(key=lambda p: (not p.base.isdigit(), int(p.base) if p.base.isdigit() else 0, p.name))
        ordered += ready
        left = [p for p in left if p not in ready]
    return ordered


def _step(path: Path) -> int | None:
    match = re.fullmatch(r"step([1-9]\d*)", path.stem)
    return int(match[1]) if match else None


def _read(family: str, arch: str, path: Path) -> Preset:
    lines = [line[1:].strip() for line in path.read_text(encoding="utf-8").split("\n") if line[:1] == "#"]
    comments = [c for c in lines if not c.startswith("yaml-language-server")]
    title = next(iter(comments), "")
    built = (re.fullmatch(r"Builds on (?:step )?(\w+)\.", c) for c in comments)
    base = next((m[1] for m in built if m), "")
    return Preset(family, arch, _step(path), path, title, title.rpartition(": ")[2].rstrip("."), base)


def _what_there_is(found: list[Preset]) -> str:
    """`gemm 1 to 9, clc on sm_100a`, an item for each family and architecture, ranges where nothing is missing."""
    groups: dict[tuple[str, str], list[Preset]] = {}
    for p in found:
        groups.setdefault((p.family, p.arch), []).append(p)
    said = []
    for (family, arch), theirs in groups.items():
        steps = [p.step for p in theirs if p.step is not None]
        whole = len(steps) > 2 and steps == list(range(steps[0], steps[-1] + 1))
        listed = [f"{steps[0]} to {steps[-1]}"] if whole else [str(s) for s in steps]
        said.append(f"{family} {', '.join(listed + [p.name for p in theirs if p.step is None])} on {arch}")
    return "; ".join(said)
