"""Work on several cores: the same results in the same order, errors that come through, and no process left behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from hops.errors import UsageError
from hops.processes import CAN_FORK, cores, on_cores, on_cores_sharing


def double(number):
    return 2 * number


def refuse(number):
    if number == 3:
        raise UsageError("not three")
    return number


def look_up(table, key):
    return table[key]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_in_the_order_of_tasks(jobs):
    ended = []
    assert on_cores(double, range(20), jobs, on_done=ended.append) == [2 * number for number in range(20)]
    assert ended == list(range(20))


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_shared_is_not_sent(jobs):
    table = {"a": 1, "b": 2, "never sent": lambda: None}
    assert on_cores_sharing(table, look_up, ["b", "a"], jobs) == [2, 1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_through(jobs):
    with pytest.raises(UsageError, match="not three"):
        on_cores(refuse, range(6), jobs)


def test_fewer_than_one_process_is_refused():
    with pytest.raises(UsageError, match=r"--jobs: got 0, expected at least 1"):
        on_cores(double, [1, 2], 0)
    assert cores() >= 1


@pytest.mark.skipif(not CAN_FORK, reason="kills a process as POSIX does")
def test_workers_end_soon_after_a_parent_that_was_killed():
    code = (
        "import os, time; from hops.processes import WorkerPool; pool = WorkerPool(1)\n"
        "print(pool.submit(os.getpid).result(), flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    for _ in range(200):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the worker is still there")
