"""`generated/<arch>/<name>/`: every preset rendered, reviewed as CUDA and compared with by the tests."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from kgen.arch import ARCHS
from kgen.errors import UsageError
from kgen.presets import Preset, all_presets
from kgen.project import MANIFEST, SPEC


@dataclass
class GoldenReport:
    """Paths below the root that were written or removed, and how many were right already."""

    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0


def golden_root() -> Path:
    """`generated/` of this checkout. Raises UsageError in an installed package, which has none."""
    checkout = Path(__file__).parent.parent
    if not (checkout / "specs").is_dir():
        raise UsageError(
            "render --all writes the goldens of a checkout; this kgen is installed (give -o DIR)"
        )
    return checkout / "generated"


def golden_files(found: Preset) -> dict[str, str]:
    """The project of one preset as `kgen new` writes it, without the record that protects hand edits."""
    from kgen.commands.sources import source_of_text

    return source_of_text(found.text, found.reference).files()


def golden_place(found: Preset, files: dict[str, str]) -> str:
    """Its directory below the root."""
    name = next(path for path in files if path.endswith(".h")).removesuffix(".h")
    return f"{found.arch}/{name}"


def write_goldens(root: Path, tell=lambda text: None) -> GoldenReport:
    """Brings `root` to what the presets render to; files and projects that none renders to are removed,
    except what a build left in `build/`."""
    report, places = GoldenReport(), set()
    for found in all_presets():
        tell(f"rendering {found.reference}")
        files = golden_files(found)
        place = golden_place(found, files)
        places.add(place)
        _write(root, place, files, report)
    for arch in ARCHS:
        for directory in sorted((root / arch).glob("*/")):
            place = f"{arch}/{directory.name}"
            if place not in places and (directory / SPEC).is_file():
                shutil.rmtree(directory)
                report.removed.append(place)
    return report


def _write(root: Path, place: str, files: dict[str, str], report: GoldenReport) -> None:
    directory = root / place
    for relative, text in files.items():
        path, data = directory / relative, text.encode()
        if path.is_file() and path.read_bytes() == data:
            report.unchanged += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        report.written.append(f"{place}/{relative}")
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_file() and relative.parts[0] not in ("build", MANIFEST) and str(relative) not in files:
            path.unlink()
            report.removed.append(f"{place}/{relative}")
