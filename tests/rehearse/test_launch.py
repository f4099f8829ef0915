"""Processes of a rehearsal, with stand-ins for what they run: every way to fail is named, and nobody is left behind."""

import os
import socket
import threading
import time

import pytest

from hops.errors import RehearsalError, UsageError
from hops.program.program import Program
from hops.rehearse import launch
from hops.rehearse.job import SEND_LINKS, Job

PROGRAM = Program.parse("microbatches 2, rank of stage 0 1 2\n0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n2F0 2B0 2F1 2B1")
STAND_IN = """\
import os, sys, time, json
from pathlib import Path
rank = int(sys.argv[1])
folder = Path(sys.argv[2]).parent
(folder / f"pid{rank}").write_text(str(os.getpid()))
(folder / f"rank{rank}.state").write_text(STATES[rank])
WHAT
"""


@pytest.fixture
def job(tmp_path):
    return Job(
        folder=str(tmp_path), port=1, rank_of_stage=(0, 1, 2), num_microbatches=2, actions=launch.actions_of(PROGRAM),
        durations_ns=({},),
        opens_pair=((), (), ()), host_ns=0, hop_ns=(0, 0), links=SEND_LINKS,
        clean=1, attempts=1, budget_s=1.0, schedule="1f1b",
        devices=("a", "b", "c"), parent=os.getpid(),
    )  # fmt: skip


def stand_in(monkeypatch, what, states=("0 1 waits", "0 2 waits", "0 0 runs")):
    monkeypatch.setattr(launch, "WORKER", ("-c", f"STATES = {list(states)!r}\n" + STAND_IN.replace("WHAT", what)))


def gone(job):
    """Every process that said its number has ended."""
    for rank in range(3):
        with pytest.raises(ProcessLookupError):
            os.kill(int((job.path / f"pid{rank}").read_text()), 0)
    return True


def all_there(job):
    return "[(folder / f'pid{r}').exists() or time.sleep(0.05) for r in range(3) for _ in range(200)]\n"


def test_all_end_well(monkeypatch, job):
    stand_in(monkeypatch, "pass")
    launch.run_ranks([job], limit_s=60)
    assert gone(job)


def test_a_rank_that_raises_is_named_with_what_it_said_and_where_the_others_were(monkeypatch, job):
    stand_in(monkeypatch, all_there(job) + "if rank == 1:\n    raise ValueError('no such layer')\ntime.sleep(60)")
    with pytest.raises(RehearsalError) as error:
        launch.run_ranks([job], limit_s=60)
    lines = str(error.value).splitlines()
    assert lines[0] == "rank 1 ended with code 1; all others were ended"
    assert "  ValueError: no such layer" in lines
    assert "  rank 0 was at 0F1 of iteration 0" in lines
    assert "  rank 1 waited at 1B0 of iteration 0 for 2SEND_B0 of rank 2" in lines
    assert "  rank 2 was at 2F0 of iteration 0" in lines
    assert gone(job)


def test_a_rank_that_is_killed_is_named_with_its_signal(monkeypatch, job):
    stand_in(monkeypatch, all_there(job) + "time.sleep(60)", states=("0 4 waits", "-1 0 waits", "0 0 starts"))

    def kill():
        while not all((job.path / f"pid{rank}").exists() for rank in range(3)):
            time.sleep(0.05)
        time.sleep(0.2)
        os.kill(int((job.path / "pid2").read_text()), 9)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RehearsalError) as error:
        launch.run_ranks([job], limit_s=60)
    killer.join()
    lines = str(error.value).splitlines()
    assert lines[:4] == [
        "rank 2 was killed by signal 9 (SIGKILL); all others were ended",
        "  rank 0 was through with iteration 0",
        "  rank 1 waited at 1F0 of the warm-up for 0SEND_F0 of rank 0",
        "  rank 2 was starting",
    ]
    assert gone(job)


def test_a_rank_that_hangs_ends_the_whole_within_the_limit(monkeypatch, job):
    stand_in(monkeypatch, all_there(job) + "time.sleep(60 if rank == 1 else 0)", states=("0 1 writes",) * 3)
    began = time.monotonic()
    with pytest.raises(RehearsalError) as error:
        launch.run_ranks([job], limit_s=5)
    assert time.monotonic() - began < 20
    assert str(error.value).startswith("the rehearsal did not end within 5 s (--limit): still running was rank 1\n")
    assert "  rank 1 was writing its trace" in str(error.value)
    assert gone(job)


def test_an_interruption_leaves_no_process(monkeypatch, job):
    stand_in(monkeypatch, all_there(job) + "time.sleep(60)")

    def interrupted(*_):
        while not all((job.path / f"pid{rank}").exists() for rank in range(3)):
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch.run_ranks([job], limit_s=60)
    assert gone(job)


def test_a_port_in_use_is_refused_and_a_free_one_found():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"--port {port}: .*in use; leave it out to take a free one"):
            launch.free_port(port)
    assert launch.free_port(None) > 0


def test_a_missing_torch_is_said_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"not installed: run `pip install 'hops-sim\[torch\]'`"):
        launch.check_torch()


def test_a_job_travels_as_it_is(job):
    assert Job.load(job.save()) == job
