"""Chunks of points, worked on by this process, its workers, or any executor: nothing is lost when a worker dies."""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

from hops.errors import UsageError
from hops.metrics.figures import check_figure
from hops.processes import WorkerPool, check_jobs, on_cores
from hops.spec.spec import Spec
from hops.sweep.outcome import Outcome, outcome

CHUNK_S = 0.25  # of work; what a worker that is killed may have to do again
MOST_POINTS = 250
FIRST_POINTS = 2
IN_FLIGHT = 2  # chunks per process: one is worked on, one waits
BATCH = 64  # specs that `evaluate` gives a process at once
TRIES = 2  # a point that twice was alone in a pool that died is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A point that is to be run: the key of its outcome, and what it changes in the base spec."""

    key: str
    changes: Mapping[str, Any]


Results = list[tuple[str, Outcome]]


def run_here(base: Spec, only: Sequence[str], tasks: Iterable[Task]) -> Iterator[Results]:
    """Outcomes, one by one, in this process."""
    for task in tasks:
        yield [(task.key, outcome(base.with_(task.changes), only))]


def run_on(
    executor: Executor, workers: int, base: Spec, only: Sequence[str], tasks: Iterable[Task]
) -> Iterator[Results]:
    """Outcomes as they come, by somebody's executor, which sees to its own workers.

    Raises UsageError if it breaks down.
    """
    work = _Work(base, only, tasks)
    try:
        while work.fill(executor, IN_FLIGHT * workers):
            for chunk in work.finished():
                yield work.results(chunk)
    except BrokenExecutor as error:
        raise UsageError(
            f"the executor broke down: {error or 'a worker died'}; what is done is kept: start again to go on"
        ) from None


def run_by(jobs: int, base: Spec, only: Sequence[str], tasks: Iterable[Task]) -> Iterator[Results]:
    """Outcomes as they come, by processes of this machine. Where one dies, others do its points again.

    A point that kills its process whenever it is alone is given up: its outcome is `died`.
    """
    work = _Work(base, only, tasks)
    pool = WorkerPool(jobs)
    try:
        while True:
            try:
                if not work.fill(pool, IN_FLIGHT * jobs):
                    break
                for chunk in work.finished():
                    yield work.results(chunk)
            except BrokenExecutor:
                yield from work.again()
                pool.stop()
                pool = WorkerPool(jobs)
    except BaseException:
        pool.stop()
        raise
    pool.shutdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """Points that one worker does; `alone`: nothing else is done at the same time."""

    tasks: tuple[Task, ...]
    future: "Future[list[Outcome]]"
    alone: bool


class _Work:
    """Tasks that wait, and chunks of them that are worked on."""

    def __init__(self, base: Spec, only: Sequence[str], tasks: Iterable[Task]) -> None:
        self._base, self._only = pickle.dumps(base), tuple(only)
        self._tasks = iter(tasks)
        self._suspects: deque[Task] = deque()  # were worked on when a process died: one at a time, to find the culprit
        self._tries: dict[str, int] = {}
        self._under_way: list[_Chunk] = []
        self._per_point = 0.0

    def fill(self, executor: Executor, chunks: int) -> bool:
        """Submit chunks until so many are worked on; whether any is. Raises BrokenExecutor."""
        while len(self._under_way) < chunks and not any(chunk.alone for chunk in self._under_way):
            if self._suspects and self._under_way:
                break
            tasks, alone = ((self._suspects[0],), True) if self._suspects else (self._next(), False)
            if not tasks:
                break
            try:
                future = executor.submit(outcomes_of, self._base, self._only, [task.changes for task in tasks])
            except BrokenExecutor:
                self._suspects.extend(() if alone else tasks)
                raise
            if alone:
                self._suspects.popleft()
            self._under_way.append(_Chunk(tasks=tasks, future=future, alone=alone))
        return bool(self._under_way)

    def _next(self) -> tuple[Task, ...]:
        """The next points, as many as take a worker about CHUNK_S."""
        size = int(CHUNK_S / self._per_point) if self._per_point else FIRST_POINTS
        return tuple(islice(self._tasks, max(1, min(size, MOST_POINTS))))

    def finished(self) -> list[_Chunk]:
        """Chunks that have ended, once one has."""
        done, _ = wait([chunk.future for chunk in self._under_way], return_when=FIRST_COMPLETED)
        return [chunk for chunk in self._under_way if chunk.future in done]

    def results(self, chunk: _Chunk) -> Results:
        """The outcomes of a chunk that has ended. Raises BrokenExecutor."""
        found = chunk.future.result()
        self._under_way.remove(chunk)
        seconds = sum(one.seconds for one in found) / len(found)
        self._per_point = seconds if not self._per_point else 0.7 * self._per_point + 0.3 * seconds
        return [(task.key, one) for task, one in zip(chunk.tasks, found, strict=True)]

    def again(self) -> Iterator[Results]:
        """After a process died: what had ended has ended, and all else waits to be done again, alone.

        What was alone and has no try left has died.
        """
        for chunk in list(self._under_way):
            if chunk.future.done() and not chunk.future.cancelled() and chunk.future.exception() is None:
                yield self.results(chunk)
                continue
            self._under_way.remove(chunk)
            for task in chunk.tasks:
                self._tries[task.key] = self._tries.get(task.key, 0) + chunk.alone
                if self._tries[task.key] >= TRIES:
                    why = f"the process that ran it was killed, {TRIES} times; it may need more memory than there is"
                    yield [(task.key, Outcome(status="died", reason=why))]
                else:
                    self._suspects.append(task)


@lru_cache(maxsize=4)
def _base(pickled: bytes) -> Spec:
    """The base spec, the very same for all chunks, so that points share what is made of it."""
    spec: Spec = pickle.loads(pickled)  # noqa: S301 (of our own making)
    return spec


def outcomes_of(pickled: bytes, only: Sequence[str], points: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """What a worker does: run points of a base spec."""
    base = _base(pickled)
    found = []
    for changes in points:
        start = time.perf_counter()
        one = outcome(base.with_(changes), only)
        found.append(replace(one, seconds=time.perf_counter() - start))
    return found


Runner = Callable[[Spec, Sequence[str], Iterable[Task]], Iterator[Results]]


def runner(jobs: int, executor: Executor | None) -> Runner:
    """Who does the work: an executor if there is one, else so many processes."""
    if executor is not None:
        return lambda base, only, tasks: run_on(executor, max(jobs, 1), base, only, tasks)
    return run_here if jobs == 1 else lambda base, only, tasks: run_by(jobs, base, only, tasks)


def evaluate(
    specs: Iterable[Spec], only: Sequence[str], *, jobs: int, executor: Executor | None = None
) -> list[Outcome]:
    """The outcomes of specs, in their order; see `hops.evaluate`. Raises UsageError for an unknown figure."""
    check_jobs(jobs)
    for name in only:
        check_figure(name)
    if executor is None and jobs == 1:
        return [outcome(spec, only) for spec in specs]
    batches = list(_batches(specs))
    tasks = [(pickle.dumps(batch), tuple(only)) for batch in batches]  # specs of a batch stay the same to each other
    found = on_cores(_outcomes, tasks, jobs) if executor is None else list(executor.map(_outcomes, tasks))
    return [one for batch in found for one in batch]


def _batches(specs: Iterable[Spec]) -> Iterator[list[Spec]]:
    left = iter(specs)
    while batch := list(islice(left, BATCH)):
        yield batch


def _outcomes(task: tuple[bytes, tuple[str, ...]]) -> list[Outcome]:
    specs: list[Spec] = pickle.loads(task[0])  # noqa: S301 (of our own making)
    return [outcome(spec, task[1]) for spec in specs]
