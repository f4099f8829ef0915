"""Raw events as Parquet: the trace's columns as they are, the metadata in the schema under `hops`."""

from importlib import import_module
from pathlib import Path
from typing import Any

from hops.errors import TraceError, UsageError
from hops.files import atomic_path
from hops.trace.checks import check_columns
from hops.trace.metadata import metadata_from_json, metadata_to_json
from hops.trace.trace import COLUMNS, Trace

_KEY = b"hops"


def write_parquet(trace: Trace, path: Path) -> None:
    """Write all rows. Raises UsageError if pyarrow is missing or the file cannot be written."""
    arrow, parquet = _pyarrow()
    table = arrow.table({name: getattr(trace, name) for name in COLUMNS})
    table = table.replace_schema_metadata({_KEY: metadata_to_json(trace.meta).encode()})
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def read_parquet(path: Path) -> Trace:
    """Read what `write_parquet` writes. Raises TraceError naming the file, UsageError if pyarrow is missing."""
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowInvalid) as error:
        raise TraceError(f"{path}: cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    missing = [name for name in COLUMNS if name not in table.column_names]
    if _KEY not in metadata or missing:
        lacks = f"the columns {', '.join(missing)}" if missing else "metadata 'hops' in its schema"
        raise TraceError(f"{path}: no HOPS trace: it lacks {lacks}; write it with `hops trace convert`")
    meta = metadata_from_json(metadata[_KEY].decode(), where=str(path))
    columns = {name: table[name].to_numpy() for name in COLUMNS}
    try:
        check_columns(columns, meta)
    except ValueError as error:
        raise TraceError(f"{path}: {error}") from error
    return Trace.from_columns(columns, meta)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed: run `pip install 'hops-sim[parquet]'`, "
            "or write a name that ends in .csv or .csv.gz"
        ) from error
