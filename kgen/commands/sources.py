"""What a command's SPEC, DIR or preset argument stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgen.errors import PlanError, UsageError
from kgen.plan import make_plan
from kgen.plan.common import GemmPlan
from kgen.presets import preset_of_reference
from kgen.project import SPEC
from kgen.spec.base import LoadedSpec, load_spec, parse_spec


@dataclass(frozen=True)
class Source:
    """A spec with its plan. `label` is how messages name it, `directory` the project it stands in, if any."""

    label: str
    loaded: LoadedSpec
    plan: GemmPlan
    directory: Path | None = None

    @property
    def text(self) -> str:
        return self.loaded.text

    def files(self, checked: bool = True) -> dict[str, str]:
        """The rendered project: relative path -> text. Raises ProtocolError where its barriers can hang or race."""
        from kgen.render import UNCHECKED, render_project
        from kgen.template_cache import use_template_cache

        use_template_cache()
        return render_project(self.plan, self.text, self.certificate() if checked else UNCHECKED)

    def certificate(self) -> str:
        """What the protocol checker proved, one line. Raises ProtocolError with its report where it cannot."""
        from kgen.certificates import certificate

        return certificate(self.plan)


def planned(loaded: LoadedSpec) -> GemmPlan:
    """The plan of a loaded spec; what the hardware refuses is located in the spec's file."""
    try:
        return make_plan(loaded.spec)
    except PlanError as error:
        raise loaded.located(error) from None


def source_of_text(text: str, label: str) -> Source:
    """Spec text that is in memory."""
    loaded = parse_spec(text, label)
    return Source(label, loaded, planned(loaded))


def source(target: str, family: str = "gemm", arch: str | None = None) -> Source:
    """A project directory, a spec file or a preset (`gemm:8`, `sm_90a/gemm/8`, `8`), in this order.

    Raises UsageError where it is none of them, SpecError for a spec that cannot be.
    """
    path = Path(target)
    if path.is_dir():
        if not (path / SPEC).is_file():
            raise UsageError(
                f"{path}: no {SPEC} in this directory (`kgen new gemm --step 9` scaffolds a project)"
            )
        loaded = load_spec(path / SPEC)
        return Source(str(path), loaded, planned(loaded), path)
    if not path.is_file() and (found := preset_of_reference(target, family, arch)):
        return source_of_text(found.text, found.reference)
    loaded = load_spec(path)
    return Source(str(path), loaded, planned(loaded), path.parent if path.name == SPEC else None)


def project(directory: Path) -> Source:
    """A project directory that was rendered. Raises UsageError for anything else."""
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such project directory")
    found = source(str(directory))
    if not (directory / f"{found.plan.name}.cu").is_file():
        raise UsageError(f"{directory}: {found.plan.name}.cu is missing; `kgen render {directory}` writes it")
    return found
