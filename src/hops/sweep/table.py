"""The table of a sweep: a row per point, as plain rows, CSV, Parquet or pandas."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hops.errors import UsageError
from hops.files import atomic_path, atomic_write
from hops.sweep.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One point: what it changes in the base spec, and what came of it."""

    number: int
    changes: Mapping[str, Any]
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """What a sweep found.

    Attributes:
        keys: the paths that vary; figures: the names of the figures.
        rows: of points that have an outcome, in order.
        size: how many points the sweep has.
    """

    keys: tuple[str, ...]
    figures: tuple[str, ...]
    rows: tuple[SweepRow, ...]
    size: int

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        failed = sum(row.outcome.status != "ok" for row in self.rows)
        return f"SweepTable({len(self.rows)} of {self.size} points, {failed} without figures)"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return ("number", *self.keys, *self.figures, "status", "reason", "seconds")

    def records(self) -> list[dict[str, Any]]:
        """A dict per row, by column; what is not known is None. A value that is a list or mapping stays one."""
        found = []
        for row in self.rows:
            values = row.outcome.figures or (None,) * len(self.figures)
            figures = dict(zip(self.figures, values, strict=True))
            changes = {key: row.changes.get(key) for key in self.keys}
            end = {"status": row.outcome.status, "reason": row.outcome.reason, "seconds": row.outcome.seconds}
            found.append({"number": row.number, **changes, **figures, **end})
        return found

    def to_csv(self, path: Path | str) -> None:
        """Write CSV. Lists and mappings are written as JSON."""
        with atomic_write(Path(path)) as stream:
            writer = csv.DictWriter(stream, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(_flat(record) for record in self.records())

    def to_parquet(self, path: Path | str) -> None:
        """Write Parquet. Raises UsageError without pyarrow."""
        try:
            pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError("Parquet needs pyarrow, which is not installed: pip install 'hops-sim[parquet]'") from None
        records = [_flat(record) for record in self.records()]
        columns = {name: _alike([record[name] for record in records]) for name in self.columns}
        with atomic_path(Path(path)) as temporary:
            parquet.write_table(pa.table(columns), temporary)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Raises UsageError without pandas."""
        try:
            pd = import_module("pandas")
        except ImportError:
            raise UsageError("pandas is not installed: pip install pandas") from None
        return pd.DataFrame.from_records([_flat(record) for record in self.records()], columns=self.columns)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: label(value) if isinstance(value, list | dict) else value for name, value in record.items()}


def label(value: Any) -> str:
    """A value of an axis as one word: a schedule by its name and parameters, JSON for other mappings and lists."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        rest = [f"{key}={each}" for key, each in value.items() if key != "name"]
        return ":".join([value["name"], ",".join(rest)]) if rest else str(value["name"])
    return value if isinstance(value, str) else json.dumps(value)


def _alike(values: Sequence[Any]) -> list[Any]:
    """A column of one type: text where types differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) < 2:
        return [float(v) if kinds == {int, float} and v is not None else v for v in values]
    return [None if value is None else str(value) for value in values]
