"""Copies a kernel into a foreign project: its .cu and its .h, and nothing else."""

from __future__ import annotations

from pathlib import Path

from kgen.errors import ProjectError
from kgen.project import write_files


def vendor_files(directory: Path, name: str, to: Path, force: bool = False) -> list[tuple[Path, str]]:
    """Copies `<name>.cu` and `<name>.h` to `to`, made if need be; returns each path with what became of it.

    Raises ProjectError, having copied nothing, where a file there differs and `force` is not given, or where
    one is missing here.
    """
    wanted = {}
    for file in (f"{name}.cu", f"{name}.h"):
        try:
            wanted[file] = (directory / file).read_bytes()
        except OSError as e:
            raise ProjectError(f"{directory / file}: cannot be read: {e.strerror}") from None
    if to.exists() and not to.is_dir():
        raise ProjectError(f"{to} is a file; --to takes a directory")
    present = {file: (to / file).read_bytes() for file in wanted if (to / file).is_file()}
    different = [file for file in present if present[file] != wanted[file]]
    if different and not force:
        raise ProjectError(
            f"{to}: nothing was copied, because {' and '.join(different)} there would be replaced "
            f"(diff {directory / different[0]} {to / different[0]}; --force replaces)"
        )
    try:
        write_files(to, {file: data for file, data in wanted.items() if present.get(file) != data})
    except OSError as e:
        raise ProjectError(f"{e.filename or to}: cannot be written: {e.strerror}") from e
    words = {True: "updated", False: "created"}
    return [
        (to / file, "unchanged" if present.get(file) == data else words[file in present])
        for file, data in wanted.items()
    ]
