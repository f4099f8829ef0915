"""The comparison of `hops bench hetero16`: the search, the original's rule and built-ins, planned and under jitter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.decode.decode import read
from hops.decode.quantities import Count, Number, Several
from hops.distributions import generator
from hops.errors import UsageError
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.builtins import search_from_builtins
from hops.search.robust import SHORTEST, mean_ns
from hops.search.search import iterations_for
from hops.timing.examples import NamedProfile, profile_from_json
from hops.timing.memory_peaks import fits_budget
from hops.timing.stage_costs import CostArrays, StageCosts, cost_arrays

HETERO16 = Path(__file__).parent / "hetero16.json"
"""Stage times and makespans that the original HOPS published (github.com/O1af/HOPS): 2 L4 + 2 A10G in 16 ways."""
RIVALS = ("1f1b", "zero_bubble", "zb_or_1f1b")
SEARCHED = "hops_hetero"
MEMORY = ("none", "p", "1f1b")
SEEDS = (42, 43, 44)
TIE = 1e-4  # gains below 0.01% either way are ties
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class HeteroTimes:
    """What the file says of one pipeline, as far as a search needs it; lists have a value per stage."""

    microbatches: Count
    forward_ms: Several[Number]
    input_backward_ms: Several[Number]
    weight_backward_ms: Several[Number]
    fused_backward_ms: Several[Number]
    hop_ms: tuple[Number, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeteroFile:
    """The file: times by the name of their pipeline."""

    pipelines: Mapping[str, HeteroTimes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """One pipeline: makespans in ms by schedule, None where memory is exceeded.

    Attributes:
        bound_ms: no program is shorter, without jitter.
        planned_ms: without jitter.
        jittered_ms: mean over the seeds, each the same noise for all schedules.
    """

    name: str
    bound_ms: float
    planned_ms: dict[str, float | None]
    jittered_ms: dict[str, float | None]


def read_hetero16(path: Path, *, fused_is_sum: bool = False, memory: str = "none") -> list[NamedProfile]:
    """The pipelines of the original HOPS from their file (`pipelines`: name to times in ms).

    Args:
        path: `hetero16.json`.
        fused_is_sum: set B := I + W in place of the file's cheaper B.
        memory: limit per stage in activations: `none`, `p` (p of them) or `1f1b` (p - s); W keeps half of each.

    Raises UsageError if the file cannot be read or is not of that form.
    """
    if memory not in MEMORY:
        raise UsageError(f"memory must be one of {', '.join(MEMORY)}, but got {memory!r}")
    pipelines = hetero_times(path)
    return [_hetero_profile(path, name, times, fused_is_sum, memory) for name, times in pipelines.items()]


def hetero_times(path: Path = HETERO16) -> Mapping[str, HeteroTimes]:
    """The file's times by the name of their pipeline. Raises UsageError if it cannot be read."""
    return read(HeteroFile, path, expected="JSON with `pipelines`, name to times", strict=False).pipelines


def _hetero_profile(path: Path, name: str, times: HeteroTimes, fused_is_sum: bool, memory: str) -> NamedProfile:
    profile: dict[str, Any] = {"name": name, **asdict(times)}
    stages = len(times.forward_ms)
    if fused_is_sum:
        both = zip(times.input_backward_ms, times.weight_backward_ms, strict=True)
        profile["fused_backward_ms"] = [i + w for i, w in both]
    limits = {"none": [None] * stages, "p": [2 * stages] * stages, "1f1b": [2 * (stages - s) for s in range(stages)]}
    profile["activation_bytes"], profile["kept_for_weight_bytes"] = [2] * stages, [1] * stages
    profile["memory_bytes"] = limits[memory]
    return profile_from_json(f"{path}: {name}", profile)


def versus(named: NamedProfile, *, jitter: float, budget_s: float, seeds: Sequence[int] = SEEDS) -> Versus:
    """Search one pipeline, build the rivals, and time all of them as planned and under the same noise."""
    profile = named.profile
    result = search_from_builtins(profile, iterations=iterations_for(budget_s, profile))
    programs: dict[str, Program | None] = {name: _rival(name, profile) for name in RIVALS}
    programs[SEARCHED] = result.program
    costs = cost_arrays(profile)
    planned = [np.repeat(costs.times[:, :, None], costs.size, axis=2)]
    noisy = [*_noise(costs, jitter, seeds)]
    return Versus(
        name=named.name,
        bound_ms=result.certificate.bound.value_ns / NS_PER_MS,
        planned_ms={name: _mean_ms(costs, program, planned) for name, program in programs.items()},
        jittered_ms={name: _mean_ms(costs, program, noisy) for name, program in programs.items()},
    )


def versus_report(rows: Sequence[Versus], rival: str) -> dict[str, Any]:
    """How the search does against one rival over all rows where both run: planned and under jitter.

    Per kind: wins, ties, regressions, and mean, least and most gain in percent of the search's time.
    """
    report: dict[str, Any] = {"rival": rival}
    for kind, times in (("planned", [row.planned_ms for row in rows]), ("jittered", [row.jittered_ms for row in rows])):
        gains = np.array([theirs / ours - 1 for each in times for theirs, ours in _both(each, rival)])
        report[kind] = {
            "pipelines": len(gains),
            "wins": int((gains > TIE).sum()),
            "ties": int((np.abs(gains) <= TIE).sum()),
            "regressions": int((gains < -TIE).sum()),
            "mean_gain_pct": 100 * float(gains.mean()) if len(gains) else None,
            "min_gain_pct": 100 * float(gains.min()) if len(gains) else None,
            "max_gain_pct": 100 * float(gains.max()) if len(gains) else None,
        }
    return report


def _both(times: dict[str, float | None], rival: str) -> Iterator[tuple[float, float]]:
    theirs, ours = times[rival], times[SEARCHED]
    if theirs is not None and ours is not None:
        yield theirs, ours


def _rival(name: str, profile: StageCosts) -> Program | None:
    scheduler = SCHEDULERS.get(name)()
    assert isinstance(scheduler, StaticScheduler), f"{name} has no program"
    scheduler.configure(profile)
    return scheduler.program if fits_budget(scheduler.program, profile) else None


def _noise(costs: CostArrays, jitter: float, seeds: Sequence[int]) -> Iterator[IntArray]:
    """Whole nanoseconds, shape (stages, 4, microbatches)."""
    for seed in seeds:
        shape = (*costs.times.shape, costs.size)
        factors = np.maximum(SHORTEST, 1 + jitter * generator(seed, "hetero16").standard_normal(shape))
        yield np.rint(costs.times[:, :, None] * factors).astype(np.int64)


def _mean_ms(costs: CostArrays, program: Program | None, draws: Sequence[IntArray]) -> float | None:
    return None if program is None else mean_ns(costs, program, draws) / NS_PER_MS
