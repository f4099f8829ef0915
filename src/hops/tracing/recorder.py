"""A rank's record of a run: a line of JSON per thing that happened, kept in memory while it trains.

The first line says who recorded; every other line is one interval:

    {"hops_trace": 1, "rank": 0, "ranks": 4, "host": "n1", "device": "NVIDIA L4", "schedule": "", "clock": "unix"}
    [0, "F", 0, 3, 1000, 2000]

that is iteration, what, stage, microbatch (-1: none), start and end in nanoseconds of the host's clock; a 1 behind them
marks both actions of a pair that ran as one. What is an op
(F, B, I, W, OPTIMIZER), a posting until it was there or gone (SEND_F, RECV_F, SEND_B, RECV_B), a collective
(GRAD_REDUCE, TIED_REDUCE, COLLECTIVE), or HOST.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

VERSION = 1
SUFFIX = ".hops.jsonl"
OPS = ("F", "B", "I", "W", "OPTIMIZER")
POSTINGS = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")
COLLECTIVES = ("GRAD_REDUCE", "TIED_REDUCE", "COLLECTIVE")
HOST = "HOST"


class RankRecorder:
    """Collects intervals of one rank and writes them into `rank<r>.hops.jsonl` of a folder."""

    def __init__(
        self, folder: Path, rank: int, ranks: int, *, device: str, schedule: str = "", clock: str = "unix"
    ) -> None:
        """Args: clock: `unix` for comparable wall clocks of several hosts, `monotonic` within one host."""
        self.path = folder / f"rank{rank}{SUFFIX}"
        self.iteration = 0
        self._header = {
            "hops_trace": VERSION, "rank": rank, "ranks": ranks, "host": socket.gethostname(), "device": device,
            "schedule": schedule, "clock": clock,
        }  # fmt: skip
        self._rows: list[str] = []
        self._written = False

    def add(self, what: str, stage: int, microbatch: int, start_ns: int, end_ns: int, *, pair: bool = False) -> None:
        """Add an interval of the current iteration; `pair`: the action ran as one with its neighbour."""
        mark = ", 1" if pair else ""
        self._rows.append(f'[{self.iteration}, "{what}", {stage}, {microbatch}, {start_ns}, {end_ns}{mark}]\n')

    def __len__(self) -> int:
        return len(self._rows)

    def write(self) -> None:
        """Append what was recorded since the last time to the file; the first time, begin it anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "" if self._written else json.dumps(self._header) + "\n"
        text += "".join(self._rows)
        with self.path.open("a" if self._written else "w", encoding="utf-8") as out:
            out.write(text)
        self._written = True
        self._rows.clear()


def rank_of_environment(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Rank and number of ranks as torchrun or Slurm state them; (0, 1) without either."""
    for rank, ranks in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in environment and ranks in environment:
            return int(environment[rank]), int(environment[ranks])
    return 0, 1


unix_ns = time.time_ns
