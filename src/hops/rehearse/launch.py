"""Starts a process per rank, watches them, and leaves none behind: not when one dies, hangs, or the user interrupts."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import hops
from hops.errors import RehearsalError, UsageError
from hops.program.action import Action, Pair
from hops.program.program import Program
from hops.program.streams import receive_of
from hops.rehearse.job import Job

WORKER = ("-m", "hops.rehearse.worker")
INSTALL = "pip install 'hops-sim[torch]'"
_TURN_S = 0.05
_LAST_LINES = 3


def check_torch() -> None:
    """Raise UsageError with the line that installs it, unless torch is there."""
    if find_spec("torch") is None:
        raise UsageError(f"a rehearsal needs PyTorch, which is not installed: run `{INSTALL}`")


def free_port(wanted: int | None) -> int:
    """The wanted port, or any that is free. Raises UsageError if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise UsageError(
                f"--port {wanted}: {error.strerror or error}; leave it out to take a free one, or name another"
            ) from None
        return int(probe.getsockname()[1])


def run_ranks(jobs: Sequence[Job], *, limit_s: float) -> None:
    """Run all ranks through all jobs, which have equally many of them, to their end.

    Raises RehearsalError, when all processes are gone, if one failed or they took longer than `limit_s`: which rank,
    and what each of the others waited for.
    """
    saved = [str(job.save()) for job in jobs]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(jobs[0].num_ranks):
            with jobs[0].log(rank).open("wb") as log:
                processes.append(_start(saved, rank, log.fileno()))
        _watch(jobs, processes, limit_s)
    finally:
        _end(processes)


def _start(saved: Sequence[str], rank: int, log: int) -> "subprocess.Popen[bytes]":
    root = str(Path(hops.__file__).parent.parent)
    others = os.environ["PYTHONPATH"].split(os.pathsep) if "PYTHONPATH" in os.environ else []
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    environment = {
        "GLOO_SOCKET_IFNAME": loopback,
        **os.environ,
        "PYTHONPATH": os.pathsep.join([root, *others]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *WORKER, str(rank), *saved]
    return subprocess.Popen(  # noqa: S603 (our own module)
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
    )


def _watch(jobs: Sequence[Job], processes: "Sequence[subprocess.Popen[bytes]]", limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while True:
        codes = [process.poll() for process in processes]
        if any(codes):
            time.sleep(_TURN_S)  # the first to fall drags others along: name the one that was killed or raised first
            raise RehearsalError(_failure(jobs, processes))
        if all(code == 0 for code in codes):
            return
        if time.monotonic() > until:
            running = [str(rank) for rank, code in enumerate(codes) if code is None]
            were = "was rank" if len(running) == 1 else "were ranks"
            raise RehearsalError(
                f"the rehearsal did not end within {limit_s:.0f} s (--limit): still running {were} "
                f"{', '.join(running)}\n{_positions(jobs)}"
            )
        time.sleep(_TURN_S)


def _failure(jobs: Sequence[Job], processes: "Sequence[subprocess.Popen[bytes]]") -> str:
    """Which rank failed, why, and where all were."""
    codes = [process.poll() for process in processes]
    killed = [rank for rank, code in enumerate(codes) if code is not None and code < 0]
    raised = [rank for rank, code in enumerate(codes) if code is not None and code > 0]
    rank = killed[0] if killed else _first_to_raise(jobs[0], raised)
    code = codes[rank] or 0
    how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
    said = jobs[0].log(rank).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    lines = [f"rank {rank} {how}; all others were ended"]
    lines += [f"  {line}" for line in said[-_LAST_LINES:] if code > 0]
    return "\n".join([*lines, _positions(jobs)])


def _first_to_raise(job: Job, raised: Sequence[int]) -> int:
    """The one whose log ended first: the others lost a peer."""
    return min(raised, key=lambda rank: job.log(rank).stat().st_mtime_ns)


def _positions(jobs: Sequence[Job]) -> str:
    """Where each rank was, in the last job that it began."""
    lines = []
    for rank in range(jobs[0].num_ranks):
        begun = [number for number, job in enumerate(jobs) if job.state(rank).exists()]
        last = begun[-1] if begun else 0
        which = f", rehearsal {last + 1} of {len(jobs)}" if len(jobs) > 1 else ""
        lines.append(f"  rank {rank} {_position(jobs[last], rank)}{which}")
    return "\n".join(lines)


def _position(job: Job, rank: int) -> str:
    """What a rank did last, by its state and the program."""
    try:
        iteration, done, what = job.state(rank).read_text(encoding="utf-8").split(maxsplit=2)
    except (OSError, ValueError):
        return "had not begun"
    words = {"starts": "was starting", "writes": "was writing its trace", "is through": "was through"}
    if what.strip() in words:
        return words[what.strip()]
    turn = "the warm-up" if iteration == "-1" else f"iteration {iteration}"
    if int(done) >= len(job.actions[rank]):
        return f"was through with {turn}"
    action = Action.parse(job.actions[rank][int(done)])
    taken = receive_of(job.rank_of_stage, action)
    if what.strip() == "runs" or taken is None:
        return f"was at {action} of {turn}"
    sender = job.rank_of_stage[taken.partner.stage]
    return f"waited at {action} of {turn} for {taken.partner} of rank {sender}"


def _end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def actions_of(program: Program) -> tuple[tuple[str, ...], ...]:
    """Every rank's actions as text, those of pairs one after the other."""
    return tuple(
        tuple(
            str(action) for entry in program.rank(rank) for action in (entry if isinstance(entry, Pair) else (entry,))
        )
        for rank in range(program.num_ranks)
    )
