"""An importer reads another tool's record of a run as a trace."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hops.errors import TraceError, UsageError
from hops.importers.clocks import aligned
from hops.importers.events import first_line
from hops.metrics.summary import RunFacts
from hops.registry import Registry
from hops.trace.files import read_events
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run that was read.

    Attributes:
        trace: `meta.schedule` is the name the run was labelled with, which need not be what ran.
        facts: what is known of the run beside its trace.
        dropped: events that a lenient reader left out, by reason.
        notes: what else a reader of the run must know, such as clocks that were set back.
    """

    trace: Trace
    facts: RunFacts
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = ()


class Importer(ABC):
    """Reads one format."""

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a file or folder looks like this format, from its name and first lines."""

    @abstractmethod
    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        """Read it. Raises TraceError with file and line at the first fault; if lenient, drops and counts faults.

        `align_clocks`: set the clocks of hosts back by what the order of actions says they are ahead, and note it.
        """


IMPORTERS: Registry[Importer] = Registry(family="importer", group="hops.importers")


def read_trace(path: Path, *, format_name: str = "", lenient: bool = False, align_clocks: bool = False) -> Imported:
    """Read a run in any known format; without `format_name` the first importer that recognises it.

    Raises TraceError as the importer does, UsageError if there is nothing there or no importer recognises it.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; expected a run to read")
    for name in [format_name] if format_name else IMPORTERS.names():
        importer = IMPORTERS.get(name)()
        if format_name or importer.recognises(path):
            return importer.read(path, lenient=lenient, align_clocks=align_clocks)
    raise UsageError(
        f"{path}: no importer recognises it (there are {', '.join(IMPORTERS.names())}); name one with --format, or see "
        "docs/reference/trace-formats.md for what can be read"
    )


@IMPORTERS.register("hops")
class OwnEvents(Importer):
    """CSV that starts with a comment of metadata, and Parquet."""

    def recognises(self, path: Path) -> bool:
        name = path.name.lower()
        if name.endswith(".parquet"):
            return True
        return name.endswith((".csv", ".csv.gz")) and first_line(path).startswith("# {")

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        """Lenient or not: HOPS wrote these files whole. Raises TraceError if it is empty."""
        trace = read_events(path)
        if not len(trace):
            raise TraceError(f"{path}: no rows in it, expected the events of at least one iteration")
        trace, notes = aligned(trace) if align_clocks else (trace, ())
        return Imported(trace=trace, facts=RunFacts(), dropped={}, notes=notes)
