"""The result of a study in numbers; its field names are the keys of the goodput JSON, and bear their units."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from hops.fleet.recovery.base import RECOVERIES
from hops.fleet.recovery_times import RULES
from hops.fleet.study import Study
from hops.fleet.time_use import LOSSES, TimeUse
from hops.fleet.trajectory import Trajectory
from hops.units import NS_PER_S

FORMAT = "hops-goodput/1"
MOST_DEVICES = 20  # of those with the longest downtime, listed one by one
_MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossSeeds:
    """Mean over the seeds, standard deviation (None for one seed), lowest and highest."""

    mean: float
    std: float | None
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "AcrossSeeds":
        """Of at least one value."""
        found = np.asarray(values, dtype=np.float64)
        std = float(found.std(ddof=1)) if len(found) > 1 else None
        return cls(mean=float(found.mean()), std=std, lowest=float(found.min()), highest=float(found.max()))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCounts:
    """Means over the seeds: faults of things in use, by kind; interruptions of training; iterations lost, by cause."""

    total: float
    by_kind: dict[str, float]
    interruptions: float
    mean_time_between_interruptions_s: float | None
    lost_iterations: float
    lost_iterations_by_cause: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFigures:
    """Seconds. `young_s`, `daly_s`: best intervals in theory; None where nothing stops or a checkpoint is free."""

    interval_s: float | None
    pause_s: float
    write_s: float
    asynchronous: bool
    young_s: float | None
    daly_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money (USD, or whatever the spec's prices are in) for all devices and spares; per token where tokens are known.

    `without_faults_...`: if every second were productive.
    """

    per_hour: float
    total: float
    per_million_tokens: float | None
    without_faults_per_million_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDowntime:
    """One device: mean seconds per seed for which it was down."""

    replica: int
    device: str
    down_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Downtime:
    """Seconds, means over the seeds. `per_device_s`: over all devices in use; `longest`: the worst, at most 20."""

    total_s: float
    per_device_s: float
    devices_hit: float
    longest: tuple[DeviceDowntime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryFigures:
    """One seed."""

    seed: int
    goodput: float
    effective_training_time_ratio: float
    iterations: int
    interruptions: int
    touched_iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputSummary:
    """Everything that is said about a study. All figures are means over its seeds unless said otherwise.

    Attributes:
        goodput: share of the time in which iterations that were kept ran at the pace without any fault.
        effective_training_time_ratio: share of the time in which iterations ran that were kept, slow ones in full.
        productive_s: goodput in seconds; it and `lost_s_by_cause` sum to `wall_s`.
        iteration_ms: mean time of an iteration of the whole fleet without faults.
        tokens_per_s: kept tokens over all time.
    """

    format: str
    policy: str
    days: float
    seeds: int
    devices: int
    spares: int
    replicas: int
    goodput: float
    effective_training_time_ratio: float
    goodput_spread: AcrossSeeds
    effective_training_time_ratio_spread: AcrossSeeds
    wall_s: float
    productive_s: float
    lost_s_by_cause: dict[str, float]
    faults: FaultCounts
    iterations: float
    iteration_ms: float
    tokens_per_s: float | None
    checkpoint: CheckpointFigures
    cost: Cost
    downtime: Downtime
    lives: tuple[TrajectoryFigures, ...]

    def __repr__(self) -> str:
        return f"GoodputSummary({self.policy}, {self.days:g} days, goodput {100 * self.goodput:.2f} %)"

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of numbers, text and None."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain


def summarize_study(study: Study, trajectories: Sequence[Trajectory]) -> GoodputSummary:
    """The figures of a study from its trajectories."""
    wall_s = study.horizon_ns / NS_PER_S
    goodput = AcrossSeeds.of([trajectory.goodput for trajectory in trajectories])
    effective = AcrossSeeds.of([trajectory.effective_training_time_ratio for trajectory in trajectories])
    iterations = _mean([trajectory.iterations for trajectory in trajectories])
    tokens = _tokens_per_iteration(study)
    iteration_ns = float(study.table.spread().slowest(_EVEN, study.fleet.replicas).mean())
    spares = study.times.spares if RECOVERIES.get(study.policy.name).keeps_spares else 0
    tokens_per_s = None if tokens is None else tokens * iterations / wall_s
    return GoodputSummary(
        format=FORMAT,
        policy=study.policy.name,
        days=wall_s / 86_400,
        seeds=len(trajectories),
        devices=study.fleet.size,
        spares=spares,
        replicas=study.fleet.replicas,
        goodput=goodput.mean,
        effective_training_time_ratio=effective.mean,
        goodput_spread=goodput,
        effective_training_time_ratio_spread=effective,
        wall_s=wall_s,
        productive_s=_mean_s(trajectories, TimeUse.PRODUCTIVE),
        lost_s_by_cause={cause.value: _mean_s(trajectories, cause) for cause in LOSSES},
        faults=_faults(trajectories, wall_s),
        iterations=iterations,
        iteration_ms=iteration_ns / 1e6,
        tokens_per_s=tokens_per_s,
        checkpoint=_checkpoint(study),
        cost=_cost(study, spares, wall_s, tokens_per_s, None if tokens is None else tokens / iteration_ns * NS_PER_S),
        downtime=_downtime(study, trajectories),
        lives=tuple(
            TrajectoryFigures(
                seed=seed,
                goodput=trajectory.goodput,
                effective_training_time_ratio=trajectory.effective_training_time_ratio,
                iterations=trajectory.iterations,
                interruptions=trajectory.interruptions,
                touched_iterations=trajectory.touched_iterations,
            )
            for seed, trajectory in zip(study.seeds, trajectories, strict=True)
        ),
    )


_EVEN = (np.arange(1000) + 0.5) / 1000


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _mean_s(trajectories: Sequence[Trajectory], cause: TimeUse) -> float:
    return _mean([trajectory.spent_ns[cause] for trajectory in trajectories]) / NS_PER_S


def _tokens_per_iteration(study: Study) -> int | None:
    size = study.setup.facts.tokens_per_microbatch
    if size is None:
        return None
    work = float(study.setup.expected.work.mean())
    return round(size * work * study.fleet.microbatches * study.fleet.replicas)


def _faults(trajectories: Sequence[Trajectory], wall_s: float) -> FaultCounts:
    kinds: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for trajectory in trajectories:
        kinds.update({kind.value: count for kind, count in trajectory.faults.items()})
        causes.update(trajectory.lost_iterations)
    size = len(trajectories)
    interruptions = _mean([trajectory.interruptions for trajectory in trajectories])
    return FaultCounts(
        total=kinds.total() / size,
        by_kind={kind: count / size for kind, count in sorted(kinds.items())},
        interruptions=interruptions,
        mean_time_between_interruptions_s=wall_s / interruptions if interruptions else None,
        lost_iterations=causes.total() / size,
        lost_iterations_by_cause={cause: count / size for cause, count in sorted(causes.items())},
    )


def _checkpoint(study: Study) -> CheckpointFigures:
    times = study.times
    pause_s = times.pause_ns / NS_PER_S
    in_theory = {
        name: rule(pause_s, study.mtbf_s) if isfinite(study.mtbf_s) and pause_s > 0 else None
        for name, rule in RULES.items()
    }
    return CheckpointFigures(
        interval_s=None if times.interval_ns is None else times.interval_ns / NS_PER_S,
        pause_s=pause_s,
        write_s=times.write_ns / NS_PER_S,
        asynchronous=times.asynchronous,
        young_s=in_theory["young"],
        daly_s=in_theory["daly"],
    )


def _cost(study: Study, spares: int, wall_s: float, kept: float | None, best: float | None) -> Cost:
    """`kept`, `best`: tokens per second, and what they would be without faults."""
    prices = [study.setup.cluster.device(each).kind.price_per_hour for each in study.fleet.devices]
    used = sum(prices) * study.fleet.replicas
    per_hour = used + spares * _mean(prices)
    per_s = per_hour / 3600
    return Cost(
        per_hour=per_hour,
        total=per_s * wall_s,
        per_million_tokens=per_s / kept * _MILLION if kept else None,
        without_faults_per_million_tokens=per_s / best * _MILLION if best else None,
    )


def _downtime(study: Study, trajectories: Sequence[Trajectory]) -> Downtime:
    down: Counter[tuple[int, int]] = Counter()
    for trajectory in trajectories:
        down.update({(unit.replica, unit.device): length for unit, length in trajectory.downtime_ns.items()})
    scale = len(trajectories) * NS_PER_S
    worst = sorted(down.items(), key=lambda item: (-item[1], item[0]))[:MOST_DEVICES]
    total_s = down.total() / scale
    return Downtime(
        total_s=total_s,
        per_device_s=total_s / study.fleet.size,
        devices_hit=_mean([len(trajectory.downtime_ns) for trajectory in trajectories]),
        longest=tuple(
            DeviceDowntime(replica=copy, device=study.fleet.devices[place], down_s=length / scale)
            for (copy, place), length in worst
        ),
    )
