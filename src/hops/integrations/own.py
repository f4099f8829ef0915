"""HOPS's own raw events, as `hops run` and `hops trace convert` write them."""

from pathlib import Path

from hops.errors import TraceError
from hops.integrations.base import IMPORTERS, Imported, Importer
from hops.integrations.lines import first_line
from hops.metrics import RunFacts
from hops.trace import read_events


@IMPORTERS.register("hops")
class OwnEvents(Importer):
    """CSV that starts with a comment of metadata, and Parquet."""

    def recognises(self, path: Path) -> bool:
        name = path.name.lower()
        if name.endswith(".parquet"):
            return True
        return name.endswith((".csv", ".csv.gz")) and first_line(path).startswith("# {")

    def read(self, path: Path, *, lenient: bool = False) -> Imported:
        """Lenient or not: HOPS wrote these files whole. Raises TraceError if it is empty."""
        trace = read_events(path)
        if not len(trace):
            raise TraceError(f"{path}: no rows in it, expected the events of at least one iteration")
        return Imported(trace=trace, facts=RunFacts(), dropped={})
