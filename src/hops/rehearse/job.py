"""What every rank's process is told: the schedule as PyTorch takes it, and how long actions and messages take.

It travels as JSON, so that a worker needs nothing of a spec.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SEND_LINKS, RENDEZVOUS = "send links", "rendezvous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rehearsal.

    Attributes:
        folder: where schedule, traces, states and results go.
        port: of the processes' meeting point on this machine.
        rank_of_stage, num_microbatches: the placement.
        actions: every rank's actions in the program's order, such as 2F0.
        durations_ns: per iteration that was simulated, action to nanoseconds; iterations take turns.
        opens_pair: per rank, numbers of the actions that run as one with the next.
        host_ns: the host's time between two entries of a rank's stream.
        hop_ns: of a message between stages s and s + 1.
        links: SEND_LINKS: a message is under way from its sending on; RENDEZVOUS: from when both sides posted it.
        clean: iterations without a late action that are wanted.
        attempts: iterations that are run at most.
        budget_s: after which no further iteration begins.
        schedule, devices: names for the trace.
        parent: process that watches; workers end when it does.
    """

    folder: str
    port: int
    rank_of_stage: tuple[int, ...]
    num_microbatches: int
    actions: tuple[tuple[str, ...], ...]
    durations_ns: tuple[Mapping[str, int], ...]
    opens_pair: tuple[tuple[int, ...], ...]
    host_ns: int
    hop_ns: tuple[int, ...]
    links: str
    clean: int
    attempts: int
    budget_s: float
    schedule: str
    devices: tuple[str, ...]
    parent: int

    @property
    def num_ranks(self) -> int:
        return len(self.actions)

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def csv(self) -> Path:
        return self.path / "schedule_with_communication.csv"

    def state(self, rank: int) -> Path:
        """Where a rank says how far it is."""
        return self.path / f"rank{rank}.state"

    def log(self, rank: int) -> Path:
        """What a rank prints."""
        return self.path / f"rank{rank}.log"

    def result(self, rank: int) -> Path:
        """What a rank found, once it is through."""
        return self.path / f"rank{rank}.result"

    def save(self) -> Path:
        """Write it into its folder."""
        path = self.path / "rehearsal.job"
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> "Job":
        """Read what `save` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        for name in ("rank_of_stage", "durations_ns", "hop_ns", "devices"):
            data[name] = tuple(data[name])
        for name in ("actions", "opens_pair"):
            data[name] = tuple(tuple(rank) for rank in data[name])
        return cls(**data)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankIteration:
    """One iteration of one rank.

    Attributes:
        late: actions that were late.
        worst_ns: how far the process was behind its device at most; negative: never.
        wall_ns: from the common start to the moment the process had done its last action.
        in_order: whether it executed the program's actions in the program's order.
    """

    late: int
    worst_ns: int
    wall_ns: int
    in_order: bool


def save_attempts(path: Path, attempts: Sequence[RankIteration]) -> None:
    """Write a rank's result."""
    path.write_text(json.dumps([asdict(each) for each in attempts]), encoding="utf-8")


def load_attempts(path: Path) -> list[RankIteration]:
    """Read a rank's result."""
    return [RankIteration(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
