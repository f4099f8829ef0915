"""Runs one command so that nothing of it outlives its time: alone as a script, with the standard library only.

`python supervise.py STDIN_FILE OUTPUT_FILE COMMAND...` starts COMMAND in a session of its own. When the command ends,
or when this process's standard input closes (its parent closed it, or died of kill -9), the command's process group
and, on Linux, everything that descends from it is killed. Exit code: the command's own, 128 + signal if it was killed,
127 if it could not be started.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 1.0
NOT_STARTED = 127


def adopt_orphans() -> None:
    """On Linux, descendants whose parent ends become our children, so that none gets away by daemonizing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Our children as Linux lists them; elsewhere none, and the process group must do."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text(encoding="ascii").split()] if path.exists() else []


def signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end(group: int, process: "subprocess.Popen[bytes]") -> None:
    """Ask the group to end, then make it, then what has left the group."""
    asked = process.poll() is None and signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while asked and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    signal_group(group, signal.SIGKILL)
    process.wait()
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # ours until waited for, so the number cannot be another's
            os.waitpid(pid, 0)


def main(stdin_file: str, output_file: str, command: list[str]) -> int:
    """Run the command to its end or ours."""
    adopt_orphans()
    done_read, done_write = os.pipe()
    os.set_blocking(done_write, False)
    signal.set_wakeup_fd(done_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with Path(stdin_file).open("rb") as given, Path(output_file).open("ab") as output:
        try:
            process = subprocess.Popen(  # noqa: S603
                command, stdin=given, stdout=output, stderr=output, start_new_session=True
            )
        except OSError as error:
            output.write(f"cannot start {command[0]}: {error.strerror}\n".encode())
            return NOT_STARTED
    while process.poll() is None:
        ready, _, _ = select.select([sys.stdin.fileno(), done_read], [], [])
        if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
            break
        if done_read in ready:
            os.read(done_read, 4096)
    end(process.pid, process)
    code = process.returncode
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
