"""Where outcomes are kept: one SQLite file, by what decides them, so that nothing is lost or done twice."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from hops.errors import UsageError
from hops.sweep.outcome import Outcome, Status

FORMAT = "hops-sweep/1"
_TABLES = """
create table if not exists about (key text primary key, value text not null);
create table if not exists outcomes (
    key text primary key, status text not null, reason text not null, figures text not null, seconds real not null
) without rowid;
create table if not exists points (
    sweep text not null, number integer not null, changes text not null, key text not null, primary key (sweep, number)
) without rowid;
"""


class Store:
    """Outcomes by key, and the points of sweeps. What `add` has been given is there after a crash of this process."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        with self._refusing():
            if self.path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=60)
            self._file.execute("pragma journal_mode = wal")  # what is committed survives the process
            self._file.execute("pragma synchronous = normal")
            with self._file:
                self._file.executescript(_TABLES)
                self._file.execute("insert or ignore into about values ('format', ?)", (FORMAT,))
            ((found,),) = self._file.execute("select value from about where key = 'format'")
        if found != FORMAT:
            raise UsageError(f"{self.path}: got a store of format {found}, expected {FORMAT}; choose another --store")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def outcome_of(self, sweep: str, number: int) -> Outcome | None:
        """What came of a sweep's point; None if it is not known."""
        query = f"select {_OUTCOME} from points join outcomes using (key) where sweep = ? and number = ?"  # noqa: S608
        with self._refusing():
            row = self._file.execute(query, (sweep, number)).fetchone()
        return None if row is None else _outcome(row)

    def keys(self, sweep: str) -> dict[int, str]:
        """The keys of a sweep's points, as far as they are known, by number."""
        with self._refusing():
            return dict(self._file.execute("select number, key from points where sweep = ?", (sweep,)))

    def done(self) -> set[str]:
        """All keys with an outcome."""
        with self._refusing():
            return {key for (key,) in self._file.execute("select key from outcomes where status != 'died'")}

    def add(
        self,
        sweep: str,
        points: Iterable[tuple[int, Mapping[str, Any], str]],
        outcomes: Iterable[tuple[str, Outcome]],
    ) -> None:
        """Points (number, changes, key) of a sweep, and outcomes by key; all of them or none."""
        rows = [(key, o.status, o.reason, json.dumps(o.figures), o.seconds) for key, o in outcomes]
        places = [(sweep, number, json.dumps(changes), key) for number, changes, key in points]
        with self._refusing(), self._file:
            self._file.executemany("insert or replace into outcomes values (?, ?, ?, ?, ?)", rows)
            self._file.executemany("insert or replace into points values (?, ?, ?, ?)", places)

    def rows(self, sweep: str) -> Iterator[tuple[int, dict[str, Any], Outcome]]:
        """Number, changes and outcome of every point that has one, in order."""
        query = (
            f"select number, changes, {_OUTCOME} from points join outcomes using (key) "  # noqa: S608 (our own words)
            "where sweep = ? order by number"
        )
        with self._refusing(), closing(self._file.execute(query, (sweep,))) as rows:
            for number, changes, *row in rows:
                yield number, json.loads(changes), _outcome(row)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What the file or its disk refuses, as words."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            fix = "choose another --store"
            if "full" in str(error):
                fix = "all points before are kept: free some space, and run the same command again"
            raise UsageError(f"cannot use the store {self.path}: {error}; {fix}") from None


_OUTCOME = "status, reason, figures, seconds"


def _outcome(row: Sequence[Any]) -> Outcome:
    status, reason, figures, seconds = row
    known: Status = status
    return Outcome(status=known, reason=reason, figures=tuple(json.loads(figures)), seconds=seconds)
