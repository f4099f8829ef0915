"""Work on several cores: results in the order of the tasks, the same for any number of processes."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from hops.errors import UsageError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
LOOKS_EVERY_S = 1.0
# macOS's frameworks do not survive a fork, Windows has none
CAN_FORK = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


class WorkerPool(ProcessPoolExecutor):
    """Processes that end with this one, however it ends, and leave Ctrl-C to it.

    They are forked where that is safe, so that they start with what is imported and compiled here.
    """

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("fork" if CAN_FORK else "spawn")
        super().__init__(max_workers=jobs, mp_context=context, initializer=_as_worker, initargs=(os.getpid(),))

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> "Future[R]":
        with warnings.catch_warnings():  # Python 3.12 warns of threads, and NumPy's idle ones know how to fork
            warnings.simplefilter("ignore", DeprecationWarning)
            return super().submit(fn, *args, **kwargs)

    def stop(self) -> None:
        """End the processes now, whatever they do."""
        workers = list((self._processes or {}).values())
        self.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()


def _as_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process soon after its parent has ended; else it would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(LOOKS_EVERY_S)
    os._exit(1)


def check_jobs(jobs: int) -> None:
    """Raise UsageError for a number of processes that cannot be."""
    if jobs < 1:
        raise UsageError(f"--jobs: got {jobs}, expected at least 1")


_BEFORE_THE_FORK: dict[int, Any] = {}  # what forked processes are given to begin with, by the number of its owner


def on_cores_sharing(
    shared: S,
    work: Callable[[S, T], R],
    tasks: Sequence[T],
    jobs: int,
    *,
    on_done: Callable[[int], None] | None = None,
) -> list[R]:
    """`work(shared, task)` of each task, in the order of the tasks; see `on_cores`.

    `shared` is not sent: processes have it from their birth. Where they cannot be forked all is done in this one.
    """
    name = id(shared)
    _BEFORE_THE_FORK[name] = shared
    try:
        return on_cores(_work_sharing, [(name, work, task) for task in tasks], jobs if CAN_FORK else 1, on_done=on_done)
    finally:
        del _BEFORE_THE_FORK[name]


def _work_sharing(given: tuple[int, Callable[[Any, Any], R], Any]) -> R:
    name, work, task = given
    return work(_BEFORE_THE_FORK[name], task)


def on_cores(
    work: Callable[[T], R], tasks: Sequence[T], jobs: int, *, on_done: Callable[[int], None] | None = None
) -> list[R]:
    """`work` of each task, in the order of the tasks.

    Args:
        work: a function of a module, so that other processes find it; what it takes and gives is sent to them.
        tasks: one argument each.
        jobs: processes; with 1, or one task, all is done in this one.
        on_done: called with the number (from 0) of tasks done before this one.

    Raises UsageError for fewer than one process, and what `work` raises first.
    """
    check_jobs(jobs)
    tell = on_done or (lambda _: None)
    if jobs == 1 or len(tasks) < 2:
        results = []
        for number, task in enumerate(tasks):
            results.append(work(task))
            tell(number)
        return results
    pool = WorkerPool(min(jobs, len(tasks)))
    try:
        futures = [pool.submit(work, task) for task in tasks]
        for number, future in enumerate(as_completed(futures)):
            future.result()
            tell(number)
    except BaseException:
        pool.stop()
        raise
    pool.shutdown()
    return [future.result() for future in futures]
