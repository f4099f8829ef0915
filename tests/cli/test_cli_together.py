"""Two jobs at once: both are done, and what goes wrong in either is said."""

import os

import pytest

from hops.cli import run as module
from hops.cli.run import in_parallel
from hops.errors import HopsError, UsageError


@pytest.fixture(params=[True, False], ids=["forked", "in turn"])
def forking(request, monkeypatch):
    if request.param and not module.CAN_FORK:
        pytest.skip("this system cannot fork")
    monkeypatch.setattr(module, "CAN_FORK", request.param)
    return request.param


def fail(message):
    raise UsageError(message)


def test_both_jobs_are_done(forking, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    in_parallel(lambda: first.write_text(str(os.getpid())), lambda: second.write_text(str(os.getpid())))
    assert (first.read_text() != second.read_text()) == forking


@pytest.mark.parametrize("which", [0, 1])
def test_an_error_of_either_is_raised(forking, which):
    jobs = [lambda: None, lambda: None]
    jobs[which] = lambda: fail(f"job {which} went wrong")
    with pytest.raises(HopsError, match=f"job {which} went wrong"):
        in_parallel(*jobs)


@pytest.mark.skipif(not module.CAN_FORK, reason="this system cannot fork")
def test_a_killed_process_is_said():
    with pytest.raises(UsageError, match="was killed"):
        in_parallel(lambda: None, lambda: os.kill(os.getpid(), 9))
