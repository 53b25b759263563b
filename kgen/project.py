"""Writes a rendered project: only what changed, never over a hand edit, nothing lost.

`.kgen.json` in the project holds the sha256 of every generated file as it was written. A file that differs
from its record was edited by hand; a file without a record was never ours. `spec.yaml` belongs to the user.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgen.errors import ProjectError

SPEC = "spec.yaml"
MANIFEST = ".kgen.json"
_FORMAT = 1


@dataclass(frozen=True)
class WriteReport:
    """What became of each file, by relative path. `saved` maps an overwritten hand edit to its copy; `kept`
    are edited files that the spec no longer generates."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    saved: tuple[tuple[str, str], ...] = ()


def write_project(files: Mapping[str, str], directory: Path, force: bool = False) -> WriteReport:
    """Brings `directory` to `files` (relative path -> text) and its record up to date.

    `spec.yaml` is written only where there is none. Raises ProjectError, having written nothing, where that
    would overwrite a hand-edited or foreign file; with `force` such a file is first kept as `<file>.orig`.
    """
    directory = Path(directory)
    recorded = read_manifest(directory)
    wanted = {path: text.encode() for path, text in files.items()}
    spec = directory / SPEC
    if SPEC in files and spec.is_file():
        if _as_text(_read(spec)) != _as_text(wanted[SPEC]):
            raise ProjectError(
                f"{spec} differs from the spec to render, and is never overwritten; render {directory} "
                "itself, or another directory (-o)"
            )
        wanted[SPEC] = _read(spec)
    present = {path: _read(directory / path) for path in {*wanted, *recorded} if _exists(directory / path)}
    changed = sorted(p for p in wanted if present.get(p) != wanted[p])
    stale = sorted(p for p in recorded if p not in wanted and p in present)
    clashes = [p for p in changed if p in present and _sha(present[p]) != recorded.get(p)]
    edited_stale = [p for p in stale if _sha(present[p]) != recorded[p]]
    if clashes and not force:
        raise ProjectError(_refusal(directory, clashes, recorded))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        moved = [*clashes, *edited_stale] if force else []
        saved = [(p, _keep_aside(directory / p).name) for p in moved]
        write_files(directory, {p: wanted[p] for p in changed})
        removed = [p for p in stale if p not in edited_stale]
        for path in removed:
            _remove(directory, path)
        record = {p: _sha(data) for p, data in wanted.items() if p != SPEC}
        manifest = json.dumps({"files": dict(sorted(record.items())), "format": _FORMAT}, indent=2) + "\n"
        if not _exists(directory / MANIFEST) or _read(directory / MANIFEST) != manifest.encode():
            write_files(directory, {MANIFEST: manifest.encode()})
    except OSError as e:
        raise ProjectError(f"{e.filename or directory}: cannot be written: {e.strerror or e}") from e
    return WriteReport(
        created=tuple(p for p in changed if p not in present),
        updated=tuple(p for p in changed if p in present),
        unchanged=tuple(sorted(p for p in wanted if p not in changed)),
        removed=tuple(removed),
        kept=() if force else tuple(edited_stale),
        saved=tuple(saved),
    )


def edits(files: Mapping[str, str], directory: Path) -> str:
    """Unified diff from what would be generated to what is there; a file that is missing there is not
    shown."""
    parts = []
    for path in sorted(set(files) - {SPEC}):
        if not _exists(directory / path):
            continue
        have = _read(directory / path).decode(errors="replace")
        parts += unified(files[path], have, f"generated/{path}", str(directory / path))
    return "".join(parts)


def unified(before: str, after: str, name_before: str, name_after: str) -> list[str]:
    """Lines of a unified diff, each with its newline; none where the texts are equal."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name_before, name_after
    )
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def require_fresh(directory: Path) -> None:
    """Raises ProjectError where `kgen new` would put a project among files that are not its own."""
    if (
        directory.is_dir()
        and not (directory / MANIFEST).is_file()
        and (others := sorted(directory.iterdir()))
    ):
        names = ", ".join(p.name for p in others[:5]) + (", ..." if len(others) > 5 else "")
        raise ProjectError(
            f"{directory} is no kgen project and not empty (it holds {names}); "
            "choose an empty or new directory with -o"
        )
    if directory.exists() and not directory.is_dir():
        raise ProjectError(f"{directory} is a file; choose a directory with -o")


def read_manifest(directory: Path) -> dict[str, str]:
    """Relative path -> sha256 of what kgen wrote; empty without a record. A broken one is a ProjectError."""
    path = Path(directory) / MANIFEST
    if not _exists(path):
        return {}
    try:
        data = json.loads(_read(path))
        files = data["files"] if data["format"] == _FORMAT else None
        if not isinstance(files, dict) or not all(
            _is_inside(p) and isinstance(h, str) for p, h in files.items()
        ):
            raise ValueError("unknown format")
    except (ValueError, KeyError, TypeError) as e:
        raise ProjectError(
            f"{path}: cannot be read ({e}); delete it, then every generated file that differs counts "
            "as edited"
        ) from None
    return files


def _is_inside(path: str) -> bool:
    return not os.path.isabs(path) and ".." not in Path(path).parts


def _refusal(directory: Path, clashes: list[str], recorded: Mapping[str, str]) -> str:
    lines = [f"{directory}: nothing was written, because these files would be overwritten:"]
    lines += [f"  {p} ({'edited by hand' if p in recorded else 'not written by kgen'})" for p in clashes]
    where = shlex.quote(str(directory))
    if not (directory / SPEC).is_file():
        return "\n".join([*lines, "choose another directory (-o)"])
    lines += [
        f"to see the edits:    kgen diff --edits {where}",
        f"to replace them:     kgen render --force {where}  (each is kept as <file>.orig)",
    ]
    return "\n".join(lines)


def _keep_aside(path: Path) -> Path:
    """Moves a file to `<file>.orig`, or the first `<file>.orig.N` that is free."""
    number, target = 0, path.with_name(path.name + ".orig")
    while True:
        try:
            os.link(path, target)  # unlike a rename, never over an existing file
            break
        except FileExistsError:
            number += 1
            target = path.with_name(f"{path.name}.orig.{number}")
    path.unlink()
    return target


def write_files(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Writes every file beside its place, and only when all are written puts them there, each atomically."""
    drafts: list[tuple[str, Path]] = []
    try:
        for relative, data in contents.items():
            path = directory / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(prefix=".kgen-", dir=path.parent)
            drafts.append((draft, path))
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(draft, (0o777 if data.startswith(b"#!") else 0o666) & ~_umask())
        for draft, path in drafts:
            os.replace(draft, path)
    finally:
        for draft, _ in drafts:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _remove(directory: Path, relative: str) -> None:
    path = directory / relative
    path.unlink()
    for parent in path.parents:
        if parent == directory or any(parent.iterdir()):
            break
        parent.rmdir()


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise ProjectError(f"{path}: cannot be read: {e.strerror or e}") from e


def _as_text(data: bytes) -> bytes:
    """With one kind of line end, whichever the user's editor writes."""
    return data.replace(b"\r\n", b"\n")


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
