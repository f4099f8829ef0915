"""Runs a sweep: only points whose outcome is not in the store, each once, in an order that does not matter."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from hops.errors import HopsError
from hops.processes import check_jobs
from hops.sweep.adaptive import run_adaptive
from hops.sweep.design import ADAPTIVE
from hops.sweep.outcome import Outcome, key_of, reason
from hops.sweep.plan import SweepPlan
from hops.sweep.store import Store
from hops.sweep.table import SweepRow, SweepTable
from hops.sweep.work import Results, Runner, Task, runner

STORED_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a sweep is.

    Attributes:
        done: points with an outcome, those of earlier runs included; failed: of these, without figures.
        total: of the sweep; ran: points that this run has worked on.
        seconds: since it began.
    """

    done: int
    failed: int
    total: int
    ran: int
    seconds: float

    @property
    def per_s(self) -> float:
        """Points that this run does in a second."""
        return self.ran / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds until the end at this rate; None before there is one."""
        return (self.total - self.done) / self.per_s if self.ran else None


def run_sweep(
    plan: SweepPlan,
    store: Store,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> SweepTable:
    """Run what is not in the store yet, and give the table of all points.

    Args:
        plan: from `load_sweep`.
        store: keeps outcomes; the same store goes on where an earlier run ended, however it ended.
        jobs: processes, or with an executor how many points it can work on at once. The table is the same for any.
        executor: any of concurrent.futures, in place of processes.
        on_progress: called after every few points.

    Raises UsageError if the store cannot be written or an executor breaks down.
    """
    check_jobs(jobs)
    sweep = _Sweep(plan, store, runner(jobs, executor), on_progress or (lambda _: None))
    if plan.sampler in ADAPTIVE:
        run_adaptive(plan, sweep.run, lambda number: store.outcome_of(sweep.name, number))
    else:
        sweep.run(enumerate(plan.points()))
    return table(plan, store)


def table(plan: SweepPlan, store: Store) -> SweepTable:
    """The table of what a store knows of a sweep."""
    rows = (SweepRow(number=n, changes=changes, outcome=out) for n, changes, out in store.rows(plan.name(_version())))
    return SweepTable(keys=plan.keys, figures=plan.figures, rows=tuple(rows), size=plan.size)


def _version() -> str:
    from hops import __version__

    return __version__


class _Sweep:
    """A sweep under way: who is done, what waits to be stored."""

    def __init__(self, plan: SweepPlan, store: Store, work: Runner, tell: Callable[[Progress], None]) -> None:
        self._plan, self._store, self._work, self._tell = plan, store, work, tell
        self._version = _version()
        self.name = plan.name(self._version)
        self._keys = store.keys(self.name)
        self._done = store.done()
        self._points: list[tuple[int, Mapping[str, Any], str]] = []  # not stored yet
        self._outcomes: Results = []
        self._seen = 0  # points whose outcome is known already
        self._waiting: dict[str, int] = {}  # points by key that somebody works on
        self._failed = self._ran = 0
        self._started = self._stored = time.monotonic()

    def run(self, points: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Run points; when this ends in whatever way, all that is known is stored."""
        try:
            for results in self._work(self._plan.base, self._plan.figures, self._tasks(points)):
                self._outcomes += results
                for key, found in results:
                    self._done.add(key)
                    number = self._waiting.pop(key)
                    self._seen += number
                    self._failed += number * (found.status != "ok")
                    self._ran += number
                if time.monotonic() - self._stored > STORED_EVERY_S:
                    self._put()
        finally:
            self._put()

    def _tasks(self, points: Iterator[tuple[int, Mapping[str, Any]]]) -> Iterator[Task]:
        """The points that have to be run, each outcome once."""
        for number, changes in points:
            key = self._keys.get(number)
            if key is not None and key in self._done:
                self._seen += 1
                continue
            try:
                key = key or key_of(self._plan.base.with_(changes), self._plan.figures, self._version)
            except HopsError as error:  # no spec: that is its outcome
                key = f"{self.name}-{number}"
                self._outcomes.append((key, Outcome(status="refused", reason=reason(error))))
                self._done.add(key)
                self._failed += 1
                self._ran += 1
            self._points.append((number, changes, key))
            if key in self._done:
                self._seen += 1
            elif key in self._waiting:
                self._waiting[key] += 1
            else:
                self._waiting[key] = 1
                yield Task(key=key, changes=changes)

    def _put(self) -> None:
        self._store.add(self.name, self._points, self._outcomes)
        self._points, self._outcomes = [], []
        self._stored = time.monotonic()
        self._tell(
            Progress(
                done=self._seen,
                failed=self._failed,
                total=self._plan.size,
                ran=self._ran,
                seconds=self._stored - self._started,
            )
        )
