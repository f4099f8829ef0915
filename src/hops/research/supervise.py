"""Runs one command so that nothing of it outlives its time: alone as a script, with the standard library only.

`python supervise.py STDIN_FILE OUTPUT_FILE COMMAND...` starts COMMAND in a session of its own. When the command ends,
or when this process's standard input closes (its parent closed it, or died of kill -9), the command's process group
and, on Linux, everything that descends from it is killed. Exit code: the command's own, 128 + signal if it was killed,
127 if it could not be started.

It runs for every command of the loop, so it forks by hand: `subprocess` and `pathlib` would double its start-up time.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 1.0
NOT_STARTED = 127


def adopt_orphans() -> None:
    """On Linux, descendants whose parent ends become our children, so that none gets away by daemonizing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Our children as Linux lists them; elsewhere none, and the process group must do."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []


def start(stdin_file: str, output_file: str, command: list[str]) -> int:
    """Start the command in a session and group of its own; gives its process id."""
    given = os.open(stdin_file, os.O_RDONLY)
    output = os.open(output_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    child = os.fork()
    if child:
        os.close(given)
        os.close(output)
        return child
    os.setsid()
    for source, target in ((given, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    os._exit(NOT_STARTED)


def reap_others(command: int) -> int | None:
    """Take leave of every child that has ended; gives the command's status if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == command:
            found = status


def wait(command: int, ended: int) -> int | None:
    """The command's status once it has ended, or None once our standard input has closed."""
    while True:
        status = reap_others(command)
        if status is not None:
            return status
        ready, _, _ = select.select([0, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
        if 0 in ready and not os.read(0, 1):
            return None


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def stop(command: int) -> int:
    """Ask the command's group to end, then make it; gives the command's status."""
    signal_group(command, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        status = reap_others(command)
        if status is not None:
            return status
        time.sleep(0.01)
    signal_group(command, signal.SIGKILL)
    return os.waitpid(command, 0)[1]


def sweep(group: int) -> None:
    """Kill what is left of the group, then what has left the group."""
    signal_group(group, signal.SIGKILL)
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # ours until waited for, so the number cannot be another's
            os.waitpid(pid, 0)


def main(stdin_file: str, output_file: str, command: list[str]) -> int:
    """Run the command to its end or ours."""
    adopt_orphans()
    ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = start(stdin_file, output_file, command)
    status = wait(child, ended)
    if status is None:
        status = stop(child)
    sweep(child)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
