"""One rehearsal: a spec is simulated, real processes run its program with the simulated times, both side by side.

What it proves: that the runtime can execute the program, in this order, that every dependency is where the simulator
has it, and that nothing blocks where the simulator lets it go on. What it does not prove: the times of actions and
messages, which it is told.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from hops.build.prepared import PreparedRun
from hops.build.run import SimulatedRun, simulate_setup
from hops.build.setup import Setup, build
from hops.errors import UsageError
from hops.importers.own_tracing import OwnTracing
from hops.metrics.iterations import Iterations
from hops.program.action import Action, Op
from hops.program.program import Program
from hops.program.pytorch_csv import check_can_be_told, communicating_csv
from hops.rehearse.job import RENDEZVOUS, SEND_LINKS, Job, RankIteration, load_attempts
from hops.rehearse.launch import actions_of, check_torch, free_port, run_ranks
from hops.spec.spec import Spec
from hops.trace.trace import Stream, Trace
from hops.units import to_ns

LINKS_OF_P2P = {"overlapped": SEND_LINKS, "posted": RENDEZVOUS}
PROVES = (
    "proves: the order, that every wait is where the simulator has it, and that nothing else blocks",
    "does not prove: how long actions and messages take; each was told its simulated time",
)
_STARTING_S = 120.0  # torch takes its time to load, on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What came of it.

    Attributes:
        simulated: the run that was predicted.
        program: what ran.
        ranks: of each rank, every iteration that was run after the first, which warms up.
        kept: numbers of the iterations that count: the clean ones, else those with the fewest late actions.
        trace: the kept iterations, on the ranks' device clocks.
    """

    simulated: SimulatedRun
    program: Program
    ranks: tuple[tuple[RankIteration, ...], ...]
    kept: tuple[int, ...]
    trace: Trace

    @property
    def late_actions(self) -> int:
        """In the iterations that count; 0 if they are clean."""
        return sum(iterations[number].late for iterations in self.ranks for number in self.kept)

    @property
    def order_equal(self) -> bool:
        """Whether every rank executed the program's actions in its order, in every iteration."""
        return all(each.in_order for iterations in self.ranks for each in iterations)

    @property
    def measured_ms(self) -> tuple[float, ...]:
        """Of each kept iteration, wall time from the common start to the end of the last rank's last action."""
        return tuple(max(each[number].wall_ns for each in self.ranks) / 1e6 for number in self.kept)

    @property
    def simulated_ms(self) -> float:
        """Mean of the pipeline's time, first F to last backward, over the simulated iterations."""
        return float(np.mean(pipeline_ns(self.simulated))) / 1e6

    @property
    def num_iterations(self) -> int:
        return len(self.ranks[0])

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        measured = self.measured_ms
        return {
            "simulated_ms": self.simulated_ms,
            "measured_min_ms": min(measured),
            "measured_p50_ms": median(measured),
            "late_actions": self.late_actions,
            "order_equal": self.order_equal,
            "ranks": [self._rank(rank) for rank in range(len(self.ranks))],
        }

    def _rank(self, rank: int) -> dict[str, object]:
        iterations = self.ranks[rank]
        worst = max(iterations[number].worst_ns for number in self.kept)
        return {
            "rank": rank,
            "device": self.simulated.trace.meta.devices[rank],
            "iterations": len(iterations),
            "kept_iterations": list(self.kept),
            "late_actions": sum(iterations[number].late for number in self.kept),
            "late_actions_in_all": sum(each.late for each in iterations),
            "worst_lag_ms": max(worst, 0) / 1e6,
            "order_equal": all(each.in_order for each in iterations),
            "busy_ms": _busy_ms(self.trace, rank),
            "simulated_busy_ms": _busy_ms(self.simulated.trace, rank),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalEffort:
    """How much is run for one rehearsal.

    Attributes:
        iterations: clean ones that are wanted.
        attempts: iterations that are run at most for them; None: eight times as many.
        budget_s: after which no further iteration begins.
    """

    iterations: int = 5
    attempts: int | None = None
    budget_s: float = 30.0

    @property
    def most(self) -> int:
        return 8 * self.iterations if self.attempts is None else max(self.attempts, self.iterations)


def rehearse(
    spec: Spec,
    *,
    effort: RehearsalEffort = RehearsalEffort(),
    limit_s: float | None = None,
    port: int | None = None,
    folder: Path | None = None,
) -> Rehearsal:
    """Run a spec's program in PyTorch's pipeline runtime, a process per rank on this machine.

    Args:
        spec: its schedule has a program; its messages are `overlapped` or `posted`.
        effort: how many iterations.
        limit_s: after which everything is ended, with RehearsalError; default: what iterations take and two minutes.
        port: where the processes meet; default: a free one.
        folder: where traces and logs stay; default: nowhere.

    Raises UsageError for what cannot be rehearsed, or if torch is missing; RehearsalError if a rank fails or hangs.
    """
    return rehearse_all(
        [spec], effort=effort, limit_s=limit_s, port=port, folders=None if folder is None else [folder]
    )[0]


def rehearse_all(
    specs: Sequence[Spec],
    *,
    effort: RehearsalEffort = RehearsalEffort(),
    limit_s: float | None = None,
    port: int | None = None,
    folders: Sequence[Path] | None = None,
) -> list[Rehearsal]:
    """The same for several specs of as many ranks, one after the other in the same processes.

    To start them takes longer than most rehearsals.
    """
    check_torch()
    simulated = [_simulated(spec) for spec in specs]
    sizes = {run.trace.meta.num_ranks for run, _ in simulated}
    if len(sizes) > 1:
        raise UsageError(f"rehearsals that share their processes have as many ranks each, but got {sorted(sizes)}")
    chosen = free_port(port)
    with tempfile.TemporaryDirectory(prefix="hops-rehearse-") as scratch:
        places = folders or [Path(scratch) / str(number) for number in range(len(specs))]
        jobs = []
        for (run, program), place in zip(simulated, places, strict=True):
            place.mkdir(parents=True, exist_ok=True)
            _clear(place)
            jobs.append(_job(run, program, place, chosen, effort))
            jobs[-1].csv.write_text(communicating_csv(program), encoding="utf-8")
        needed = sum(effort.budget_s + 2 * max(pipeline_ns(run)) / 1e9 for run, _ in simulated)
        run_ranks(jobs, limit_s=limit_s or _STARTING_S + needed)
        return [_result(job, run, program) for job, (run, program) in zip(jobs, simulated, strict=True)]


def _result(job: Job, simulated: SimulatedRun, program: Program) -> Rehearsal:
    ranks = tuple(tuple(load_attempts(job.result(rank))) for rank in range(job.num_ranks))
    trace, kept = OwnTracing().read(job.path).trace, _kept(ranks)
    return Rehearsal(
        simulated=simulated,
        program=program,
        ranks=ranks,
        kept=kept,
        trace=trace.where(np.isin(trace.iteration, kept)),
    )


def _simulated(spec: Spec) -> tuple[SimulatedRun, Program]:
    setup = build(spec)
    program = _program(setup)
    return simulate_setup(setup), program


def _program(setup: Setup) -> Program:
    spec = setup.spec
    if spec.pipeline.p2p not in LINKS_OF_P2P:
        raise UsageError(
            f"pipeline.p2p: got {spec.pipeline.p2p}, but PyTorch's runtime never blocks a rank for a message: "
            f"rehearse with {' or '.join(LINKS_OF_P2P)}, such as --set pipeline.p2p=overlapped"
        )
    if spec.failure.enabled:
        raise UsageError("failure.enabled: a rehearsal breaks nothing: use --set failure.enabled=false")
    program = PreparedRun.of(setup).program
    if program is None:
        raise UsageError(
            f"the schedule {spec.pipeline.schedule.name} decides during the run and has no program that PyTorch could "
            "run; choose one that has (`hops list schedules`)"
        )
    check_can_be_told(program.shape)
    return program


def _clear(folder: Path) -> None:
    """Remove what an earlier rehearsal left."""
    for pattern in ("rank*.hops.jsonl", "rank*.state", "rank*.log", "rank*.result", "rehearsal.job"):
        for path in folder.glob(pattern):
            path.unlink()


def _job(simulated: SimulatedRun, program: Program, folder: Path, port: int, effort: RehearsalEffort) -> Job:
    setup = simulated.setup
    return Job(
        folder=str(folder),
        port=port,
        rank_of_stage=program.shape.rank_of_stage,
        num_microbatches=program.shape.num_microbatches,
        actions=actions_of(program),
        durations_ns=_durations(simulated.trace),
        opens_pair=tuple(tuple(np.flatnonzero(closes[1:]).tolist()) for closes in program.split(program.closes_pair)),
        host_ns=int(to_ns(setup.spec.pipeline.host_per_action)),
        hop_ns=tuple(int(to_ns(hop)) for hop in setup.expected.hop_s),
        links=LINKS_OF_P2P[setup.spec.pipeline.p2p],
        clean=effort.iterations,
        attempts=effort.most,
        budget_s=effort.budget_s,
        schedule=simulated.trace.meta.schedule,
        devices=simulated.trace.meta.devices,
        parent=os.getpid(),
    )


def _durations(trace: Trace) -> tuple[Mapping[str, int], ...]:
    """Of each simulated iteration, how long every action takes."""
    rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W))
    found: dict[int, dict[str, int]] = {}
    columns = (rows.iteration, rows.stage, rows.op, rows.microbatch, rows.duration_ns)
    for iteration, stage, op, microbatch, duration in zip(*(column.tolist() for column in columns), strict=True):
        found.setdefault(iteration, {})[str(Action(stage, Op(op), microbatch))] = duration
    return tuple(found[iteration] for iteration in sorted(found))


def pipeline_ns(run: SimulatedRun) -> list[int]:
    """Of each iteration, from the first F to the end of the last backward."""
    every = Iterations.of(run.trace, run.facts)
    lengths: list[int] = (every.pipeline_end_ns - every.pipeline_start_ns).tolist()
    return lengths


def _kept(ranks: tuple[tuple[RankIteration, ...], ...]) -> tuple[int, ...]:
    late = [sum(each.late for each in iteration) for iteration in zip(*ranks, strict=True)]
    return tuple(number for number, count in enumerate(late) if count == min(late))


def _busy_ms(trace: Trace, rank: int) -> float:
    """Mean over iterations of the time that a rank computes actions."""
    mine = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W) & (trace.rank == rank)
    return float(trace.duration_ns[mine].sum()) / 1e6 / max(trace.num_iterations, 1)
