"""Raw events in files: the name's ending says the format."""

from pathlib import Path

from hops.errors import UsageError
from hops.trace.csv import read_csv, write_csv
from hops.trace.parquet import read_parquet, write_parquet
from hops.trace.trace import Trace

_FORMATS = {".csv": (write_csv, read_csv), ".csv.gz": (write_csv, read_csv), ".parquet": (write_parquet, read_parquet)}


def write_events(trace: Trace, path: Path | str) -> None:
    """Write a trace as `.csv`, `.csv.gz` or `.parquet`; `read_events` gives back an equal one.

    Raises UsageError for another ending, or if the file cannot be written.
    """
    _FORMATS[_ending(Path(path))][0](trace, Path(path))


def read_events(path: Path | str) -> Trace:
    """Read a trace from a file of raw events. Raises TraceError saying file and line, UsageError for another ending."""
    return _FORMATS[_ending(Path(path))][1](Path(path))


def _ending(path: Path) -> str:
    for ending in _FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    raise UsageError(f"{path}: unknown format of raw events: expected a name that ends in {', '.join(_FORMATS)}")
