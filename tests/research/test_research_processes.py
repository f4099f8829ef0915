"""Commands end when they must: at their limit and with us, and with them all that they have started."""

import os
import signal
import time
from pathlib import Path

import pytest
from research_project import KILLED, in_a_process

from hops.research.measure import run_limited

# Starts a grandchild that leaves the process group and ignores SIGTERM, then does as told.
DAEMON = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; sleep 300' & while [ ! -s daemon ]; do sleep 0.01; done; "


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(true):
    for _ in range(500):
        if true():
            return
        time.sleep(0.01)
    pytest.fail("waited for 5 s")


def run(tmp_path, script, limit_s=20.0, **options):
    return run_limited(["sh", "-c", script], cwd=tmp_path, limit_s=limit_s, output=tmp_path / "out/put.txt", **options)


def test_output_input_environment_and_exit_code_pass_through(tmp_path):
    (tmp_path / "in.txt").write_text("given")
    ended = run(tmp_path, "cat; echo $WORD; echo wrong >&2; exit 3", stdin=tmp_path / "in.txt", env={"WORD": "known"})
    assert (ended.code, ended.timed_out, ended.ok) == (3, False, False)
    assert ended.tail() == "givenknown\nwrong"
    assert ended.story("it", 20) == "it ended with exit code 3; its last lines:\ngivenknown\nwrong"


def test_a_killed_command_has_128_and_the_signal_as_its_code(tmp_path):
    assert run(tmp_path, "kill -9 $$").code == 128 + signal.SIGKILL


def test_a_command_that_cannot_start_says_so(tmp_path):
    ended = run_limited(["no-such-command"], cwd=tmp_path, limit_s=20.0, output=tmp_path / "put.txt")
    assert ended.code == 127
    assert ended.tail() == "cannot start no-such-command: No such file or directory"


def test_only_the_end_of_a_long_output_is_told(tmp_path):
    ended = run(tmp_path, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
    assert ended.tail(2) == "line 2998\nline 2999"


def test_a_command_is_ended_at_its_limit(tmp_path):
    ended = run(tmp_path, "echo begun; sleep 300", limit_s=1.0)
    assert ended.timed_out
    assert ended.story("the agent", 1.0) == "the agent ran longer than 1 s and was ended; its last lines:\nbegun"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
@pytest.mark.parametrize("then", ["exit 0", "sleep 300"], ids=["at its end", "at the limit"])
def test_what_a_command_leaves_behind_ends_too(tmp_path, then):
    """Even in a session of its own and deaf to SIGTERM."""
    ended = run(tmp_path, DAEMON + then, limit_s=20.0 if then == "exit 0" else 1.5)
    assert ended.ok == (then == "exit 0")
    assert not alive(int((tmp_path / "daemon").read_text()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_a_command_ends_when_its_loop_is_killed(tmp_path):
    def loop():
        run(tmp_path, DAEMON + f"echo $$ > command; kill -9 {os.getpid()}; sleep 300")

    code, _ = in_a_process(loop, tmp_path)
    assert code == KILLED
    for name in ("command", "daemon"):
        wait_until(lambda name=name: not alive(int((tmp_path / name).read_text())))
