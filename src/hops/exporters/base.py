"""An exporter says what a spec describes in the words of one runtime: files, and what a person must know about them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hops.build.costs import partition
from hops.build.figures import resolve as look_up
from hops.build.prepared import PreparedRun
from hops.build.setup import build
from hops.errors import UsageError
from hops.files import atomic_write
from hops.program.lowering import check
from hops.program.program import Program
from hops.registry import Registry
from hops.spec.spec import Spec, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Launchable:
    """What there is to export.

    Attributes:
        name: of the spec, for messages and comments.
        spec: with its defaults filled in.
        program: as its schedule arranges it.
        layers: of every stage; None: the spec states times and names no model.
    """

    name: str
    spec: Spec
    program: Program
    layers: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Files by name, and notes: what the runtime cannot be told, and what to do with the files."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = ()


class Exporter(ABC):
    """Writes for one runtime."""

    @abstractmethod
    def export(self, plan: Launchable) -> Exported:
        """The files. Raises UsageError saying what the runtime cannot run, and what it can."""


EXPORTERS: Registry[Exporter] = Registry(family="exporter", group="hops.exporters")


def launchable(spec: Spec, name: str) -> Launchable:
    """Arrange a spec's schedule. Raises UsageError for a policy, which has no program, and as `build` does."""
    prepared = PreparedRun.of(build(spec))
    if prepared.program is None:
        raise UsageError(
            f"{name}: the schedule {spec.pipeline.schedule.name} decides during the run and has no program to export; "
            "choose one that has (`hops list schedules`)"
        )
    check(prepared.program)
    layers = None if spec.pipeline.model is None else partition(look_up(spec), spec.shape()).layers
    return Launchable(name=name, spec=resolve(spec), program=prepared.program, layers=layers)


def write(exported: Exported, folder: Path) -> list[Path]:
    """Write the files into a folder; returns their paths."""
    paths = []
    for name, text in exported.files.items():
        with atomic_write(folder / name) as out:
            out.write(text)
        paths.append(folder / name)
    return paths
