"""Plans as they come out: figures, the bound they are held against, and the spec that reproduces them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hops.build.run import SimulatedRun
from hops.errors import DoesNotFitError
from hops.metrics.summary import RankSummary, Summary
from hops.planner.bottleneck import most_layers
from hops.planner.candidates import Search
from hops.planner.problem import Objective
from hops.spec.spec import Spec
from hops.units import format_bytes

FORMAT = "hops-plan/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """One simulated plan.

    Attributes:
        spec: closed; `hops run` of it gives `summary` again.
        summary: of the simulated run, with the spec's jitter, iterations and seed.
        value: what is ranked by, to be small; see Objective.
        gap: value over the bound over all choices, less one.
        cost_per_million: price of a million tokens (of a million samples without a model), on all replicas.
        price_per_hour: of all devices in use.
        fullness: peak memory over capacity of the fullest device; None if sizes are not known.
        limit: what keeps it from being faster, in words.
    """

    spec: Spec
    run: SimulatedRun
    summary: Summary
    value: float
    gap: float
    cost_per_million: float
    price_per_hour: float
    fullness: float | None
    limit: str

    def __repr__(self) -> str:
        return f"Plan({self.spec!r}, {1e3 * self.seconds:.3f} ms an iteration)"

    @property
    def seconds(self) -> float:
        """Of an iteration, the mean."""
        return self.summary.iteration_time.mean_ms / 1e3

    def to_dict(self) -> dict[str, Any]:
        """Plain data, keys with units."""
        pipeline = self.spec.pipeline
        rates = self.summary.throughput
        return {
            "schedule": pipeline.schedule.model_dump(mode="json"),
            "placement": list(self.spec.hardware.ranks()),
            "partition": list(pipeline.partition) if isinstance(pipeline.partition, tuple) else pipeline.partition,
            "microbatches": pipeline.microbatches,
            "microbatch_size": pipeline.microbatch_size,
            "recompute": pipeline.recompute,
            "iteration_ms": self.summary.iteration_time.mean_ms,
            "samples_per_s": rates.samples_per_s,
            "tokens_per_s": rates.tokens_per_s,
            "price_per_hour": self.price_per_hour,
            "cost_per_million": self.cost_per_million,
            "peak_memory_fraction": self.fullness,
            "gap_pct": 100 * self.gap,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much was looked at; the same effort gives the same plans.

    Attributes:
        layouts: valued by their closed-form floor.
        rehearsed: programs evaluated.
        simulated: runs of the engine.
        exhaustive: whether the best plan is proved: all layouts were valued, and all that could be better simulated.
        interrupted: whether the user stopped it.
    """

    layouts: int
    rehearsed: int
    simulated: int
    exhaustive: bool
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """Ranked plans, best first, and the bound over all choices: no plan can have a smaller value.

    Attributes:
        others: plans that were simulated as well.
        bound: in the unit of `value`.
        bound_ms: iteration time that no plan of the best plan's batch can beat.
    """

    objective: Objective
    plans: tuple[Plan, ...]
    others: tuple[Plan, ...]
    bound: float
    bound_ms: float
    effort: Effort

    def __repr__(self) -> str:
        return f"PlanReport({self.objective}, {len(self.plans)} plans, no iteration below {self.bound_ms:.3f} ms)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `hops plan --json` prints it."""
        return {
            "format": FORMAT,
            "objective": str(self.objective),
            "bound": self.bound,
            "bound_ms": self.bound_ms,
            "gap_pct": 100 * self.plans[0].gap if self.plans else None,
            "effort": {
                "layouts": self.effort.layouts,
                "rehearsed": self.effort.rehearsed,
                "simulated": self.effort.simulated,
                "exhaustive": self.effort.exhaustive,
                "interrupted": self.effort.interrupted,
            },
            "plans": [{"rank": number, **plan.to_dict()} for number, plan in enumerate(self.plans, start=1)],
        }


NEARLY_FULL = 0.97
MATTERS = 0.05
CAUSES = {
    "warm_up_cool_down": "filling and draining the pipeline",
    "imbalance": "uneven work",
    "messages": "messages",
    "fault": "faults",
    "step": "the end of the iteration",
}


def limit_of(summary: Summary) -> str:
    """The busiest rank, why it still idles, and memory that is nearly full; the largest share first."""
    busiest = max(summary.ranks, key=lambda rank: rank.busy_ms)
    whole = summary.iteration_time.mean_ms
    parts = [(busiest.busy_ms / whole, f"rank {busiest.rank} ({_kind(busiest)}) computes")]
    for cause, words in CAUSES.items():
        share = getattr(busiest.idle_ms, cause) / whole
        if share >= MATTERS:
            parts.append((share, _with_link(summary, words) if cause == "messages" else words))
    parts.sort(key=lambda part: -part[0])
    said = [f"{words} {100 * share:.0f} %" for share, words in parts]
    return "; ".join([*said, *_memory(summary)])


def _kind(rank: RankSummary) -> str:
    return rank.device.split(" ", 1)[0]


def _with_link(summary: Summary, words: str) -> str:
    """Messages, with the busiest link."""
    used = [link for link in summary.links if link.messages]
    if not used:
        return words
    return f"{words} (busiest: {max(used, key=lambda link: link.busy_share).name})"


def fullness_of(summary: Summary) -> float | None:
    """Peak memory over capacity of the fullest device."""
    known = [
        rank.memory.peak_bytes / rank.memory.capacity_bytes
        for rank in summary.ranks
        if rank.memory is not None and rank.memory.capacity_bytes
    ]
    return max(known) if known else None


def _memory(summary: Summary) -> list[str]:
    full = [rank for rank in summary.ranks if _share(rank) >= NEARLY_FULL]
    if not full:
        return []
    worst = max(full, key=_share)
    return [f"memory of rank {worst.rank} ({_kind(worst)}) {100 * _share(worst):.0f} % full"]


def _share(rank: RankSummary) -> float:
    if rank.memory is None or not rank.memory.capacity_bytes:
        return 0.0
    return rank.memory.peak_bytes / rank.memory.capacity_bytes


_GIB = 1 << 30


def nothing_fits(searches: Sequence[Search]) -> DoesNotFitError:
    """The error for searches of which none found a layout; one reason per kind of group."""
    reasons = dict.fromkeys(_reason(search) for search in searches)
    return DoesNotFitError("no placement fits: " + "\nand: ".join(reasons))


def _reason(search: Search) -> str:
    """The strongest proof: in sum, for a single layer, or by trying all ways to lay the layers out."""
    problem = search.problem
    blocks, pool, layers, counts = problem.blocks, problem.pool, problem.num_layers, problem.counts
    recompute = search.group.recompute
    have = int((counts * pool.memory_bytes).sum())
    weights = int(_least_static(search))
    if weights > have:
        return (
            f"weights, gradients and optimizer states alone need {_gib(weights)} GiB of {_gib(have)} on "
            f"{int(counts.sum())} devices; add devices, or share the states (optimizer.distributed)"
        )
    smallest = int((blocks.static + blocks.activation)[blocks.parameters > 0].min())
    largest = int(pool.memory_bytes[counts > 0].max())
    if smallest > largest:
        return (
            f"one layer with one microbatch needs {_gib(smallest)} GiB, and the largest device has "
            f"{format_bytes(largest)}; use a smaller microbatch_size, or more recompute than {recompute!r}"
        )
    hardest = search.bounds.bottleneck_problem
    held = most_layers(hardest)
    flight = search.group.schedules[0].name if len(hardest.needed) > 1 else "one microbatch in flight"
    if held < layers:
        return (
            f"with {flight} and recompute {recompute!r} all devices together hold at most {held} of the {layers} "
            f"layers, embedding and head counted; {_ways_out(recompute)}"
        )
    return (
        f"with {'/'.join(schedule.name for schedule in search.group.schedules)} and recompute {recompute!r} what the "
        f"spec leaves open offers no layout that fits; {_ways_out(recompute)}"
    )


def _least_static(search: Search) -> float:
    """Bytes of all layers and both ends, however they are cut."""
    static = search.problem.blocks.static.astype(np.float64)
    layers = search.problem.num_layers
    if layers < 3:
        return float(static[0, layers])
    return float(min(static[0, layers], static[0, 1] + static[1, layers - 1] + static[layers - 1, layers]))


def _ways_out(recompute: str) -> str:
    more = "more recompute, " if recompute != "full" else ""
    return f"use {more}a smaller microbatch_size, another schedule, or more devices"


def _gib(size: int) -> str:
    return f"{size / _GIB:.0f}" if size >= 10 * _GIB else f"{size / _GIB:.2f}"
