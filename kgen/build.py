"""A project directory (or one .cu file) to PTX, cubin, library and executable, and what the compiler said.

Products go to `build/` beside the source: `<name>.ptx`, `<name>.cubin`, `lib<name>.so`, `<name>`, a log of
each compilation, and `report.json`, by which a product is rebuilt only when its sources, the flags or the compiler changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kgen.arch import Arch
from kgen.errors import BuildError, ProjectError, ToolchainError, UsageError
from kgen.flags import nvcc_flags
from kgen.nvrtc import compile_ptx_nvrtc
from kgen.ptxas import KernelUsage, Note, parse, spills
from kgen.toolchain import Toolchain, find_toolchain, nvcc_candidates

__all__ = [
    "BuildReport",
    "build_executable",
    "build_library",
    "compile_cubin",
    "compile_ptx",
    "compile_ptx_nvrtc",
    "nvcc_flags",
    "project_source",
]

# Profilers and compute-sanitizer then name the line, from the same machine code. PTX stays readable without.
LINE_FLAGS = ("-lineinfo",)
# A kernel library shows its C entry points and nothing else; the static CUDA runtime in it stays private.
LIBRARY_FLAGS = ("-Xcompiler", "-fPIC,-fvisibility=hidden")
LIBRARY_LINK_FLAGS = ("-shared", "-Xlinker", "--exclude-libs,ALL")

TIMEOUT_S = 300
_FORMAT = 1  # of report.json
_ENVIRONMENT = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "CPLUS_INCLUDE_PATH")


@dataclass(frozen=True)
class BuildReport:
    """What one product took and what the compiler said of it.

    `seconds` is wall time; `peak_rss_mb` (MiB) is that of the largest compiler process; `kernels` is empty
    for PTX, which no assembler has seen; `cached` says that nothing was compiled this time.
    """

    artifact: Path
    seconds: float
    peak_rss_mb: float
    kernels: tuple[KernelUsage, ...] = ()
    notes: tuple[Note, ...] = ()
    log: Path | None = None
    cached: bool = False

    def violations(self, allow: Collection[str] = ()) -> tuple[Note, ...]:
        """Every note a kernel must not cause, spills first. `allow` names ptxas codes (C7519) to let pass."""
        said = [n for n in self.notes if n.severity != "info" or n.code]
        # ptxas names the function in its own spill warning; do not say it twice.
        silent = [
            k for k in self.kernels if not any("spilled" in n.line and f"'{k.name}'" in n.line for n in said)
        ]
        found = [note for k in silent if (note := spills(k))] + said
        return tuple(n for n in found if not (n.code and n.code in allow))

    def gate(self, allow: Collection[str] = ()) -> None:
        """Raises BuildError, quoting the compiler, on a spill, a warning or any advisory note of ptxas."""
        if bad := self.violations(allow):
            raise BuildError(_complaint(self.artifact.name, bad, self.log))

    def to_json(self) -> dict:
        """Plain data, as in report.json. `artifact` and `log` are file names within the build directory."""
        data = asdict(self)
        return data | {"artifact": self.artifact.name, "log": self.log.name if self.log else None}

    @staticmethod
    def from_json(data: dict, build_dir: Path) -> BuildReport:
        return BuildReport(
            artifact=build_dir / data["artifact"],
            seconds=data["seconds"],
            peak_rss_mb=data["peak_rss_mb"],
            kernels=tuple(KernelUsage(**k) for k in data["kernels"]),
            notes=tuple(Note(**n) for n in data["notes"]),
            log=build_dir / data["log"] if data["log"] else None,
            cached=data["cached"],
        )


def project_source(project: Path) -> Path:
    """The one kernel file of a project directory, or the file itself where a .cu file is given.

    Raises UsageError where there is nothing, ProjectError where the directory is no project.
    """
    if project.is_file():
        return project
    if not project.is_dir():
        raise UsageError(f"{project}: no such project directory")
    kernels = sorted(p for p in project.glob("*.cu") if p.name != "main.cu")
    if len(kernels) != 1:
        names = ", ".join(p.name for p in kernels) or "none"
        raise ProjectError(f"{project}: a project holds exactly one <name>.cu beside main.cu; found: {names}")
    return kernels[0]


def compile_ptx(
    project: Path, arch: Arch, *, strict: bool = True, allow: Collection[str] = (), flags: Sequence[str] = ()
) -> BuildReport:
    """`build/<name>.ptx`, through NVRTC where there is no nvcc. See `build_library` for the rest."""
    if not nvcc_candidates():
        return _ptx_through_nvrtc(project_source(Path(project)).resolve(), arch)
    return _Job(project, arch, strict, allow, flags).compile("ptx", ("-ptx",))


def compile_cubin(
    project: Path, arch: Arch, *, strict: bool = True, allow: Collection[str] = (), flags: Sequence[str] = ()
) -> BuildReport:
    """`build/<name>.cubin`: the cheapest product that passes the compile gate. See `build_library`."""
    return _Job(project, arch, strict, allow, flags).compile("cubin", ("-cubin", *LINE_FLAGS))


def build_library(
    project: Path, arch: Arch, *, strict: bool = True, allow: Collection[str] = (), flags: Sequence[str] = ()
) -> BuildReport:
    """`build/lib<name>.so` of a project directory (or a single .cu), with the CUDA runtime linked in.

    `strict` turns warnings into errors and applies the gate; `allow` lets ptxas codes pass it; `flags` are
    added to each compilation. Raises ToolchainError without a compiler; BuildError, with the compiler's lines
    quoted, when it refuses or the gate fails; no product is left behind then.
    """
    job = _Job(project, arch, strict, allow, flags)
    with job.locked():
        return job.link_library()


def build_executable(
    project: Path, arch: Arch, *, strict: bool = True, allow: Collection[str] = (), flags: Sequence[str] = ()
) -> BuildReport:
    """`build/<name>`: the kernel with the project's main.cu. See `build_library` for arguments and errors."""
    job = _Job(project, arch, strict, allow, flags)
    if not (job.dir / "main.cu").is_file():
        raise ProjectError(f"{job.dir}: no main.cu, so there is no executable to build")
    with job.locked():
        return job.link_executable()


def _ptx_through_nvrtc(source: Path, arch: Arch) -> BuildReport:
    start = time.monotonic()
    ptx = compile_ptx_nvrtc(source.read_text(), arch, name=source.name)
    out = source.parent / "build" / f"{source.stem}.ptx"
    out.parent.mkdir(exist_ok=True)
    out.write_text(ptx)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # NVRTC works inside this process
    return BuildReport(out, round(time.monotonic() - start, 3), round(peak, 1))


class _Job:
    """One project, one architecture, one set of flags."""

    def __init__(self, project: Path, arch: Arch, strict: bool, allow: Collection[str], flags: Sequence[str]):
        self.source = project_source(Path(project)).resolve()
        self.dir, self.name = self.source.parent, self.source.stem
        self.build_dir = self.dir / "build"
        self.tools: Toolchain = find_toolchain()
        self.strict, self.allow = strict, frozenset(allow)
        self.flags = (*nvcc_flags(arch, strict=strict), *flags)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Two processes (parallel tests) may build one project: the second waits and finds it done."""
        try:
            self.build_dir.mkdir(exist_ok=True)
            with open(self.build_dir / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as e:
            raise BuildError(f"{self.build_dir}: cannot write the build directory: {e.strerror or e}") from e

    def compile(self, suffix: str, mode: tuple[str, ...]) -> BuildReport:
        with self.locked():
            return self._make(f"{self.name}.{suffix}", [*mode, *self.flags, self.source.name])

    def link_library(self) -> BuildReport:
        kernel = self._object()
        link = [*LIBRARY_LINK_FLAGS, *self.tools.link_flags, str(kernel.artifact)]
        return self._make(f"lib{self.name}.so", link, kernel)

    def link_executable(self) -> BuildReport:
        kernel = self._object()
        inputs = ["main.cu", str(kernel.artifact)]
        return self._make(self.name, [*LINE_FLAGS, *self.flags, *self.tools.link_flags, *inputs], kernel)

    def _object(self) -> BuildReport:
        """The kernel compiled once for both the library and the executable."""
        return self._make(
            f"{self.name}.o", ["-c", *LINE_FLAGS, *self.flags, *LIBRARY_FLAGS, self.source.name]
        )

    def _make(self, product: str, args: list[str], kernel: BuildReport | None = None) -> BuildReport:
        """One nvcc run to `build/<product>`, unless report.json shows that it would change nothing.

        `kernel` is the object linked in: its costs and messages count for the product too.
        """
        out = self.build_dir / product
        key = self._key(args)
        if (known := self._recorded(out, key)) is not None:
            return self._passed(known)
        self._record(out, key, None)
        log = self.build_dir / f"{product}.log"
        with tempfile.TemporaryDirectory(prefix=".nvcc-", dir=self.build_dir) as scratch:
            made = Path(scratch) / product
            command = [str(self.tools.nvcc), *args, "-o", str(made)]
            code, seconds, peak = _run(command, self.dir, Path(scratch), log)
            kernels, notes = parse(log.read_text(errors="replace").split("\n", 1)[1])
            if code != 0 or not made.is_file():
                raise BuildError(_complaint(product, notes, log, code))
            report = BuildReport(out, round(seconds, 3), round(peak, 1), kernels, notes, log)
            if kernel is not None:
                report = replace(
                    report,
                    seconds=round(report.seconds + kernel.seconds, 3),
                    peak_rss_mb=max(report.peak_rss_mb, kernel.peak_rss_mb),
                    kernels=(*kernel.kernels, *kernels),
                    notes=(*kernel.notes, *notes),
                )
            self._passed(report)
            os.replace(made, out)
        self._record(out, key, report)
        return report

    def _passed(self, report: BuildReport) -> BuildReport:
        if self.strict:
            report.gate(self.allow)
        return report

    def _key(self, args: list[str]) -> str:
        """Hash of all that decides the product: sources, flags, compilers, variables nvcc listens to."""
        digest = hashlib.sha256()
        host = shutil.which(os.environ.get("NVCC_CCBIN") or "gcc") or ""
        host_stat = os.stat(host).st_mtime_ns if host else 0
        environment = [f"{v}={os.environ.get(v, '')}" for v in _ENVIRONMENT]
        parts = [
            str(_FORMAT),
            str(self.tools.nvcc),
            self.tools.version,
            os.path.realpath(host),
            str(host_stat),
        ]
        for text in (*parts, *environment, *args):
            digest.update(text.encode() + b"\0")
        sources = [p for p in self.dir.iterdir() if p.suffix in (".h", ".cuh", ".hpp") or p.name in args]
        for path in sorted({self.source, *sources}):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def _recorded(self, out: Path, key: str) -> BuildReport | None:
        entry = self._records().get(out.name)
        if not entry or entry.get("key") != key or not out.is_file() or entry.get("sha256") != _sha256(out):
            return None
        try:
            return replace(BuildReport.from_json(entry["report"], self.build_dir), cached=True)
        except (KeyError, TypeError):
            return None

    def _records(self) -> dict:
        try:
            data = json.loads((self.build_dir / "report.json").read_text())
            return data["products"] if data["format"] == _FORMAT else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _record(self, out: Path, key: str, report: BuildReport | None) -> None:
        """Enters `report`, or with None forgets and removes the stale product before it is made anew."""
        products = self._records()
        if report is None:
            products.pop(out.name, None)
            out.unlink(missing_ok=True)
        else:
            products[out.name] = {"key": key, "sha256": _sha256(out), "report": report.to_json()}
        data = {"format": _FORMAT, "nvcc": self.tools.version, "products": dict(sorted(products.items()))}
        draft = self.build_dir / ".report.json"
        draft.write_text(json.dumps(data, indent=2) + "\n")
        os.replace(draft, self.build_dir / "report.json")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(command: list[str], cwd: Path, scratch: Path, log: Path) -> tuple[int, float, float]:
    """Runs nvcc, its output to `log`, its litter to `scratch`. Returns exit code, seconds, peak MiB."""
    # The C locale keeps the host compiler's messages in the words that `parse` knows.
    env = os.environ | {"TMPDIR": str(scratch), "LC_ALL": "C"}
    with open(log, "w") as out:
        out.write(" ".join(command) + "\n")
        out.flush()
        start = time.monotonic()
        try:
            process = subprocess.Popen(
                command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as e:
            raise ToolchainError(f"{command[0]}: cannot be run: {e.strerror or e}") from e
        # nvcc runs the real compilers as children, so the whole session is ended.
        watchdog = threading.Timer(TIMEOUT_S, _kill, (process.pid,))
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _kill(process.pid)
            process.wait()
            raise
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    if process.returncode == -signal.SIGKILL and seconds >= TIMEOUT_S:
        raise BuildError(f"nvcc was stopped after {TIMEOUT_S} s; its output is in {log}")
    return process.returncode, seconds, usage.ru_maxrss / 1024


def _kill(session: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _complaint(product: str, notes: Sequence[Note], log: Path | None, code: int | None = None) -> str:
    """The message of a BuildError: the compiler's lines with their meaning, each kind once."""
    bad = [n for n in notes if n.code or n.severity == "error" or (code is None and n.severity == "warning")]
    # ptxas's last words add nothing where the cause is known.
    causes = [n for n in bad if "Ptx assembly aborted" not in n.line] or bad
    kinds: dict[str, list[Note]] = {}
    for note in causes:
        kinds.setdefault(note.code or note.line, []).append(note)
    shown = [str(n[0]) + (f"\n    ({len(n)} times)" if len(n) > 1 else "") for n in kinds.values()]
    text = "\n  ".join(shown[:6]) or f"nvcc ended with exit code {code} and no message"
    more = f"\n  ... and {len(shown) - 6} more" if len(shown) > 6 else ""
    where = f"\n  full output: {log}" if log else ""
    what = "the compiler refused" if code is not None else "the build rules are broken"
    return f"{product}: {what}:\n  {text}{more}{where}"
